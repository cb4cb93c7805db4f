"""The review pages. A view gets its object from `access`, its page from a selector, and decides
nothing: rules are in the core, and what a person decides is recorded by a service.
"""
