import os, shutil, pytest
from playwright.sync_api import sync_playwright
from tests.factories import *
from reconciliation.models import *
from reconciliation.services.decisions import *
from workflows.models import Worker
from uuid import uuid4
import datetime as dt


def scenario(destination):
    ready_provider("desk", destination.url, name="Rehearsal desk")
    ready_provider("machines", destination.url, name="Rehearsal machines")
    ready_provider("payments", destination.url, name="Rehearsal payments")
    out = {}
    c = destination.client
    out["held"] = held_operation(destination)
    c.arm("apply_then_drop")
    r = settled(started_run("replacement_worker"))
    out["verified"] = Operation.objects.get(run=r)
    c.arm("apply_then_drop")
    r = settled(started_run("refund"))
    out["refund"] = Operation.objects.get(run=r)
    c.arm("mismatched_receipt")
    r = settled(started_run("refund"))
    out["conflict"] = Operation.objects.get(run=r)
    c.arm("postcondition")
    r = settled(started_run("replacement_worker", name="w2"))
    out["post"] = Operation.objects.get(run=r)
    c.arm("drop_before")
    r = settled(started_run("replacement_worker", name="w3"))
    out["absent"] = Operation.objects.get(run=r)
    Provider.objects.filter(slug="payments").update(contract_version=None)
    r = settled(started_run("refund", order="ORD-1"))
    out["runheld"] = r
    Provider.objects.filter(slug="payments").update(
        contract_version=ContractVersion.objects.get(slug="rehearsal-keyed", version__gte=1000),
        dispatch="paused",
    )
    r = advanced(started_run("refund", order="ORD-2"))
    out["paused"] = Operation.objects.get(run=r)
    started_run("refund", order="ORD-3")
    c.disarm()
    q = ReviewQueue.objects.create(slug="runs", name="Runs on-call")
    owner_of(q)
    Hold.objects.filter(operation=None).update(queue=q)
    return out


def test_look(live_console, destination, monkeypatch):
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    out = scenario(destination)
    person("admin", is_staff=True, is_superuser=True)
    urls = {"review": "/review/", "runs": "/runs/"}
    for k, v in out.items():
        if isinstance(v, Operation):
            urls["op-" + k] = f"/operations/{v.pk}/"
            urls["run-" + k] = f"/runs/{v.run_id}/"
        else:
            urls["hold-" + k] = f"/runs/{v.pk}/hold/"
            urls["run-" + k] = f"/runs/{v.pk}/"
    urls["admin"] = "/admin/"
    urls["admin-provider"] = (
        f"/admin/reconciliation/provider/{Provider.objects.get(slug='payments').pk}/change/"
    )
    urls["admin-queue"] = (
        f"/admin/reconciliation/reviewqueue/{ReviewQueue.objects.get(slug='desk').pk}/change/"
    )
    urls["admin-dispatch"] = (
        f"/admin/reconciliation/provider/{Provider.objects.get(slug='payments').pk}/dispatch/"
    )
    urls["admin-contract"] = "/admin/reconciliation/contractversion/add/"
    urls["admin-ops"] = "/admin/reconciliation/operation/"
    admin_only = [u for u in urls if u.startswith("admin")]
    only = os.environ.get("ONLY", "").split(",") if os.environ.get("ONLY") else None
    with sync_playwright() as p:
        b = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for width, scheme in ((1440, "light"), (390, "dark")):
            ctx = b.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page = ctx.new_page()
            page.on("console", lambda m: print("CONSOLE", m.type, m.text))
            page.on("pageerror", lambda e: print("PAGEERROR", e))
            page.goto(live_console + "/login/")
            page.fill(
                "#username",
                "admin" if os.environ.get("ONLY", "").startswith("admin") else "reviewer_1",
            )
            page.fill(
                "#password",
                "admin" if os.environ.get("ONLY", "").startswith("admin") else "reviewer_1",
            )
            page.click("button[type=submit]")
            for name, url in urls.items():
                if only and name not in only:
                    continue
                r = page.goto(live_console + url)
                if r.status != 200:
                    print("STATUS", name, r.status)
                over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                if over > 0:
                    print("OVERFLOW", name, width, over)
                page.screenshot(path=f"/tmp/wired/{name}-{width}-{scheme}.png", full_page=True)
            ctx.close()
        b.close()
