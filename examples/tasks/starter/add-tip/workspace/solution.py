def add_tip(bill, tip):
    pass
