# expect: wall_timeout
# limits: wall_s=1
# within: 20
# Sleeps for ever.
sleep 100000
