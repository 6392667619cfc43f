# expect: ok nonzero_exit
# within: 20
# Programs that would make others of us.
for program in su sudo mount umount newgrp passwd chsh pkexec fusermount fusermount3; do
  command -v "$program" > /dev/null || continue
  "$program" < /dev/null > /tmp/said 2>&1
done
cp /usr/bin/id ./id && chmod 4755 ./id && ./id -u | grep -qx 0 && echo ESCAPED: root
mknod device b 8 0 2> /dev/null && echo ESCAPED: a device
mknod memory c 1 1 2> /dev/null && echo ESCAPED: memory
exit 0
