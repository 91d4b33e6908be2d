# SPDX-License-Identifier: Apache-2.0
#
# unpack_kernel.py IMAGE KERNEL: writes the kernel that a boot image (bzImage) has within it. An emulated machine starts
# it sooner, since it need not unpack it. Exits with status 1 and the reason if there is none that starts without the
# code of the image, as one with a PVH entry does. The image's header is described in the kernel's documentation, "The
# Linux/x86 Boot Protocol".
import gzip
import lzma
import struct
import subprocess
import sys

SETUP_SECTORS, MAGIC, PAYLOAD = 0x1F1, 0x202, 0x248
LENGTH_BYTES = 4  # behind the compressed kernel is its length
PVH_NOTES = [struct.pack("<III", 4, size, 18) + b"Xen\0" for size in (4, 8)]


def unpacked(payload):
    if payload.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b"\x1f\x8b"):
        return gzip.decompress(payload[:-LENGTH_BYTES])
    if payload.startswith(b"\x28\xb5\x2f\xfd"):
        zstd = ["zstd", "-d", "-c", "-q"]
        return subprocess.run(zstd, input=payload[:-LENGTH_BYTES], stdout=subprocess.PIPE, check=True).stdout
    sys.exit("unpack_kernel.py: unknown compression")


def main():
    with open(sys.argv[1], "rb") as file:
        image = file.read()
    if image[MAGIC : MAGIC + 4] != b"HdrS":
        sys.exit("unpack_kernel.py: not a boot image")
    offset, size = struct.unpack_from("<II", image, PAYLOAD)
    begin = (image[SETUP_SECTORS] + 1) * 512 + offset
    kernel = unpacked(image[begin : begin + size])
    if not any(note in kernel for note in PVH_NOTES):
        sys.exit("unpack_kernel.py: the kernel has no PVH entry")
    with open(sys.argv[2], "wb") as file:
        file.write(kernel)


main()
