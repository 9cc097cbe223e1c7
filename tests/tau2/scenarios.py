"""Scripted conversations: for a task, what each model replies, one after the other. The last reply of a script repeats."""

import json
import os


def text(content):
    return {"content": content}


def call(name, **arguments):
    return {"calls": [[name, arguments]]}


def calls(*pairs):
    return {"calls": [[name, arguments] for name, arguments in pairs]}


def gold(task):
    """Returns the scripts in which both models take the gold actions of a task."""
    agent, user = [], [text("Hello, my phone has a problem.")]
    scripts, turn = {"assistant": agent, "user": user}, "assistant"
    for action in task["evaluation_criteria"]["actions"] or []:
        by = action.get("requestor", "assistant")
        if by != turn:
            scripts[turn].append(text("It is your turn."))
            turn = by
        scripts[turn].append(call(action["name"], **action["arguments"]))
    if turn == "assistant":
        agent.append(text("That was all."))
    user.append(text("Thank you. ###STOP###"))
    agent.append(text("Goodbye."))
    return {"agent": agent, "user": user}


HELLO = text("Hello, my phone has a problem.")
STOP = text("Thank you. ###STOP###")


def special(tasks):
    """Returns conversations with mistakes and limits, by name."""
    by_action = lambda name: next(t for t in tasks if any(a["name"] == name for a in t["evaluation_criteria"]["actions"]))
    transfer, refuel = by_action("transfer_to_human_agents"), by_action("refuel_data")
    roaming, pay = by_action("enable_roaming"), by_action("send_payment_request")
    first = tasks[0]
    fuel = next(a for a in refuel["evaluation_criteria"]["actions"] if a["name"] == "refuel_data")["arguments"]
    owner = {"customer_id": fuel["customer_id"]}
    wrong = [
        call("get_customer_by_phone", phone="555"),
        call("get_customer_by_phone", phone_number="555-000-0000"),
        call("get_customer_by_phone", phone_number=5551232002),
        call("get_customer_by_phone"),
        call("get_customer_by_id", customer_id=None),
        call("enable_roaming", customer_id="C1001", line_id="L9999"),
        call("get_details_by_id", id="C1001", requestor="user", tool_name="x", self=1),
    ]
    conversations = {
        "wrong-arguments": (roaming, [*wrong, *gold(roaming)["agent"]], gold(roaming)["user"]),
        # Results depend on the order of arguments, and on the types of large numbers.
        "arguments-word-for-word": (
            first,
            [call("get_customer_by_phone", zeta=1, alpha=2), call("get_details_by_id", id=123456789012345678901234567890), call("get_details_by_id", id=1.0),
             call("get_details_by_id", id={"z": [1, 2.50], "a": None, "é": "🙂"}), text("Look.")],
            [HELLO, call("check_status_bar", zeta=1, alpha=2), call("set_network_mode_preference", mode={"z": 1, "a": 12345678901234567890123}), STOP],
        ),
        "unknown-tools": (
            first,
            [call("fly_to_the_moon", fuel=1), call("toggle_data"), call("__init__"), call("_get_line_by_id", line_id="L1001"), text("Look at your phone.")],
            [HELLO, call("get_customer_by_id", customer_id="C1001"), call("no_such_tool"), call("assert_mobile_data_status", expected_status=True), STOP],
        ),
        "text-and-tools-of-agent": (first, [{"content": "I look.", **call("get_customer_by_id", customer_id="C1001")}, text("Done.")], [HELLO, STOP]),
        "text-and-tools-of-user": (first, [text("Look."), text("Done.")], [HELLO, {"content": "I look.", **call("check_status_bar")}, STOP]),
        "stop-with-tools": (first, [text("Look.")], [HELLO, {"content": "###STOP###", **call("check_status_bar")}, STOP]),
        "max-steps-of-text": (first, [text("Please try again.")], [HELLO, text("It does not work.")]),
        "max-steps-of-tools": (first, [call("get_customer_by_id", customer_id="C1001")], [HELLO]),
        "max-steps-of-user-tools": (first, [text("Look.")], [HELLO, call("check_network_status")]),
        "too-many-errors": (first, [call("get_customer_by_id", customer_id="nobody")], [HELLO]),
        "too-many-errors-at-once": (first, [calls(*[("fly", {})] * 14), text("Oh.")], [HELLO, STOP]),
        "too-many-errors-of-both": (first, [call("fly"), text("Look.")], [HELLO, call("swim")]),
        "transfer": (transfer, gold(transfer)["agent"], [HELLO, text("Goodbye. ###TRANSFER###")]),
        "transfer-that-is-wrong": (first, [call("transfer_to_human_agents", summary="I give up."), text("Wait.")], [HELLO, text("###TRANSFER###")]),
        "transfer-forgotten": (transfer, [text("I cannot help you.")], [HELLO, STOP]),
        "out-of-scope": (first, [text("What is the matter?")], [text("###OUT-OF-SCOPE###")]),
        "stop-at-once": (first, [text("?")], [STOP]),
        "stop-in-lower-case": (first, [text("?")], [text("###stop###"), text("# # #STOP###"), STOP]),
        "agent-says-stop": (first, [text("###STOP###"), text("Go on.")], [HELLO, text("You said it, not me."), STOP]),
        "many-calls-at-once": (
            roaming,
            [calls(("get_customer_by_id", {"customer_id": "C1001"}), ("fly", {}), ("get_data_usage", {"customer_id": "C1001", "line_id": "L1002"}),
                   ("enable_roaming", {"customer_id": "C1001", "line_id": "L1002"}), ("enable_roaming", {"customer_id": "C1001", "line_id": "L1002"})), text("Look.")],
            [HELLO, calls(("toggle_airplane_mode", {}), ("check_status_bar", {}), ("toggle_airplane_mode", {}), ("run_speed_test", {})), STOP],
        ),
        "all-tools-of-user": (
            first,
            [text("Look at everything.")],
            [HELLO, *[call(name) for name in ("check_status_bar", "check_network_status", "check_network_mode_preference", "run_speed_test", "toggle_airplane_mode",
             "check_sim_status", "reseat_sim_card", "toggle_data", "toggle_roaming", "check_data_restriction_status", "toggle_data_saver_mode", "check_apn_settings",
             "reset_apn_settings", "check_wifi_status", "toggle_wifi", "check_wifi_calling_status", "toggle_wifi_calling", "check_vpn_status", "connect_vpn",
             "disconnect_vpn", "check_installed_apps", "can_send_mms", "reboot_device", "check_payment_request", "make_payment")],
             call("set_network_mode_preference", mode="3g_only"), call("set_network_mode_preference", mode="7g"),
             call("check_app_status", app_name="messaging"), call("check_app_permissions", app_name="messaging"),
             call("grant_app_permission", app_name="messaging", permission="sms"), call("grant_app_permission", app_name="ünicode 🙂", permission="x"), STOP],
        ),
        # The bill that a refuel draws has a random number, which later replies can't name.
        "data-and-bills": (
            refuel,
            [call("get_data_usage", customer_id=fuel["customer_id"], line_id=fuel["line_id"]), call("refuel_data", **fuel), call("refuel_data", **{**fuel, "gb_amount": -1}),
             call("refuel_data", **{**fuel, "gb_amount": "2"}), call("get_data_usage", customer_id=fuel["customer_id"], line_id=fuel["line_id"]), *gold(refuel)["agent"]],
            gold(refuel)["user"],
        ),
        "bills-with-random-numbers": (
            refuel,
            [call("refuel_data", **fuel), call("get_bills_for_customer", **owner), call("get_customer_by_id", **owner), call("refuel_data", **fuel), text("Done.")],
            [HELLO, call("check_status_bar"), STOP],
        ),
        "payment-twice": (
            pay,
            [*gold(pay)["agent"][:3], *gold(pay)["agent"]],
            gold(pay)["user"],
        ),
    }
    return {name: {"task": task["id"], "agent": agent, "user": user} for name, (task, agent, user) in conversations.items()}


def build(folder):
    """Returns all conversations, by name, for the tasks in the data folder of the official source."""
    data = os.path.join(folder, "data", "tau2", "domains", "telecom")
    with open(os.path.join(data, "split_tasks.json"), encoding="utf-8") as file:
        base = set(json.load(file)["base"])
    with open(os.path.join(data, "tasks.json"), encoding="utf-8") as file:
        tasks = [task for task in json.load(file) if task["id"] in base]
    conversations = {f"gold-{at}": {"task": task["id"], **gold(task)} for at, task in enumerate(tasks)}
    return {**conversations, **special(tasks)}
