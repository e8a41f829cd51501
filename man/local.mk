dist_man_MANS += man/semlock.1
