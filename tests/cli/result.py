# SPDX-License-Identifier: Apache-2.0
#
# Looks into result files for the black-box tests:
#   validate SCHEMA FILE...   against the schema; status 77 where the module for that is not installed
#   config FILE               prints the `config` member
#   same A B                  equal but for `provenance`
#   differ A B                not equal even without `provenance`
#   get FILE PATH             prints the value at a dotted path
#   true FILE EXPRESSION      whether a Python expression over the members holds
import json
import sys


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def compared(path):
    result = load(path)
    del result["provenance"]
    return json.dumps(result, sort_keys=True)


def validate(schema_path, *paths):
    try:
        import jsonschema
    except ImportError:
        print("skipped: python3-jsonschema is not installed")
        return 77
    schema = load(schema_path)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    wrong = 0
    for path in paths:
        for error in validator.iter_errors(load(path)):
            print(f"{path}: {'.'.join(map(str, error.path))}: {error.message[:300]}", file=sys.stderr)
            wrong = 1
    return wrong


def get(path, members):
    value = load(path)
    for member in members.split("."):
        value = value[int(member)] if isinstance(value, list) else value[member]
    print(value)
    return 0


def main(command, *words):
    if command == "validate":
        return validate(*words)
    if command == "config":
        json.dump(load(words[0])["config"], sys.stdout)
        return 0
    if command == "same":
        return 0 if compared(words[0]) == compared(words[1]) else 1
    if command == "differ":
        return 0 if compared(words[0]) != compared(words[1]) else 1
    if command == "true":
        return 0 if eval(words[1], {}, load(words[0])) else 1
    return get(*words)


sys.exit(main(*sys.argv[1:]))
