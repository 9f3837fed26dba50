"""Runs a command and prints its wall clock, processor seconds and peak memory as a JSON line. Arguments: name, command."""
import json
import resource
import subprocess
import sys
import time

at = time.perf_counter()
subprocess.run(sys.argv[2:], check=True, stdout=subprocess.DEVNULL)
wall = time.perf_counter() - at
used = resource.getrusage(resource.RUSAGE_CHILDREN)
mib = used.ru_maxrss / 1024
print(json.dumps({"what": sys.argv[1], "wall": [wall], "processor": [used.ru_utime + used.ru_stime], "peak_mib": mib}))
