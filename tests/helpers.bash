# What every bats file loads first.
