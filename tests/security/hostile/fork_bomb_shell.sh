# expect: ok nonzero_exit signaled pids_limit cpu_timeout
# within: 20
# The classic one. The main shell may end while its brood lives on.
bomb() { bomb | bomb & }
bomb
sleep 1
