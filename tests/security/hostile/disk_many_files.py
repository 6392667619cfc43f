# expect: disk_limit
# within: 20
"""Uses up inodes."""

number = 0
while True:
    open(f"f{number}", "w").close()
    number += 1
