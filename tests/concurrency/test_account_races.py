"""Two administrators at once, each through the admin's own form."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.console.test_admin_people import saved
from tests.factories import administrator, person
from tests.racing import at_once

pytestmark = pytest.mark.usefixtures("committed_db")


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_two_administrators_who_close_each_others_account_leave_one() -> None:
    ada, ben = administrator(), person("admin_2", is_superuser=True, is_staff=True)
    by_ada, by_ben = signed_in(ada), signed_in(ben)
    for _ in range(5):
        answers = at_once(
            lambda: saved(by_ada, ben, is_superuser=None),
            lambda: saved(by_ben, ada, is_superuser=None),
        )
        assert HTTPStatus.FOUND in {answer.status_code for answer in answers}
        assert User.objects.filter(is_superuser=True).count() == 1
        User.objects.update(is_superuser=True)
