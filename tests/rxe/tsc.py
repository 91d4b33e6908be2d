# SPDX-License-Identifier: Apache-2.0
#
# tsc.py: prints how often per millisecond the time stamp counter of this processor counts, for run.sh: an emulated
# processor has the counter of the real one. Prints nothing on processors that have none. Python has no function that
# reads the counter, so this writes the instructions to memory and calls them.
import ctypes
import mmap
import platform
import time

READ_COUNTER = b"\x0f\x31\x48\xc1\xe2\x20\x48\x09\xd0\xc3"  # rdtsc; shl $32, %rdx; or %rdx, %rax; ret
INTERVALS = 5


def interval(read):
    """The rate over 20 ms, and how long the two readings of clock and counter took, which bounds its error."""
    readings = []
    for _ in range(2):
        before_ns = time.monotonic_ns()
        counter = read()
        readings.append((counter, before_ns, time.monotonic_ns() - before_ns))
        time.sleep(0.02)
    (first, first_ns, first_took), (second, second_ns, second_took) = readings
    return first_took + second_took, 1e6 * (second - first) / (second_ns - first_ns)


def main():
    if platform.machine() != "x86_64":
        return
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(READ_COUNTER)
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    _, rate = min(interval(read) for _ in range(INTERVALS))
    print(round(rate))


main()
