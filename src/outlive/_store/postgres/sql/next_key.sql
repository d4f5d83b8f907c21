SELECT nextval('{sequence}')
