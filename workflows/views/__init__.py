"""The pages about runs. A view gets its object from `access`, its page from a selector."""
