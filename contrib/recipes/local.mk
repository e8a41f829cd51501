# Scripts to copy from.  They are documentation, and run by tests/recipes*.bats.
recipesdir = $(docdir)/recipes
RECIPE_FILES = \
	contrib/recipes/counter \
	contrib/recipes/counter-race \
	contrib/recipes/data-file \
	contrib/recipes/limits \
	contrib/recipes/loud-after \
	contrib/recipes/marker \
	contrib/recipes/on-off \
	contrib/recipes/pid-file \
	contrib/recipes/pool \
	contrib/recipes/queue \
	contrib/recipes/reject \
	contrib/recipes/section \
	contrib/recipes/self-lock
dist_recipes_SCRIPTS = $(RECIPE_FILES)
dist_recipes_DATA = \
	contrib/recipes/README \
	contrib/recipes/crontab \
	contrib/recipes/guard

SHELL_FILES += $(RECIPE_FILES)
LOCAL_BATS += tests/recipes.bats
EXTRA_DIST += contrib/recipes/.shellcheckrc
