# expect: output_limit
# within: 20
# Complains without end.
yes complaint >&2
