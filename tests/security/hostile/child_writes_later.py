# expect: ok
# within: 20
"""A child that goes on writing to the workspace after its parent has ended."""

import os
import time

if os.fork() == 0:
    number = 0
    while True:
        with open("late", "w") as target:
            target.write(str(number))
        number += 1
time.sleep(0.2)
