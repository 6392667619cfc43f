# expect: disk_limit
# within: 20
# Fills the workspace.
cat /dev/zero > hoard
