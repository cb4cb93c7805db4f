"""Under /admin/rights/, before the admin's own addresses."""

from __future__ import annotations

from django.urls import path

from romulus_site.rights import views

urlpatterns = [
    path("person/<int:pk>/", views.rights_of_person, name="rights_of_person"),
    path("group/<int:pk>/", views.rights_of_group, name="rights_of_group"),
    path("<slug:kind>/<uuid:pk>/", views.rights, name="rights"),
    path(
        "<slug:kind>/<uuid:pk>/<slug:whose>/<int:holder>/",
        views.rights_change,
        name="rights_change",
    ),
]
