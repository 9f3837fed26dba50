"""Repeats a piece of work and prints its times as a JSON line: wall clock and processor seconds of every run."""
import json
import time


def repeat(what, work, repeats, **more):
    work()  # warm: pages, caches, thread pools
    wall, processor = [], []
    for _ in range(repeats):
        at, used = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - at)
        processor.append(time.process_time() - used)
    print(json.dumps({"what": what, "wall": wall, "processor": processor, **more}), flush=True)
