def add_tip(bill, tip):
    return bill + tip
