# expect: ok
# within: 20
# Leaves a child behind that holds the output open.
sleep 100000 &
echo done
