#!/usr/bin/env python3
"""Checks properties of template.yaml that linters don't check.

References aren't resolved: checks see `!Ref` and `!GetAtt` as ordinary objects. Prints the problems and exits with 1, or
prints the number of checks.
"""

import json
import pathlib
import re
import sys

import yaml

# Actions that roles may have on `*`, each with the reason. No role needs one.
ALLOWED_ON_EVERYTHING = {}
RECEIVES_MAX = 5
DEAD_RETENTION_S = 14 * 24 * 3600
# Variable with the number of samples of one invocation that operators see.
CONCURRENCY = "WORKER_ITEM_CONCURRENCY"
# Names of variables whose values are secrets. Functions must read them through BENCH_SECRETS, not from the template.
SECRET_NAME = re.compile(r"(SECRET|PASSWORD|TOKEN|_API_KEY|PRIVATE_KEY|MASTER_KEY|OWNER_KEY)$")
# Secrets and the functions that may read them. Exports are a separate function so that no other one reads the signing key.
READERS = {
    "SigningSecret": {"Exports", "ExportsStream"},
    "OwnersSecret": {"Api", "ApiStream", "Exports", "ExportsStream"},
    "AdminSecret": {"Api", "ApiStream", "Exports", "ExportsStream"},
    "OperatorSecret": {"Api", "Planner", "Worker", "Turns", "Scheduler"},
}
# Alarms on sums of failures and on silence, each with its comparison, threshold, period in seconds, number of periods, number
# of these that raise it, and the treatment of missing data.
ALARM_RULES = {
    "DeadLetters": ("GreaterThanThreshold", 0, 300, 2, 1, "notBreaching"),
    # Three failures of an hourly task, which may be late, fall into 38 periods.
    "Failures": ("GreaterThanThreshold", 0, 300, 38, 3, "notBreaching"),
    "Errors": ("GreaterThanThreshold", 0, 300, 3, 3, "notBreaching"),
    "Throttles": ("GreaterThanThreshold", 0, 300, 3, 2, "notBreaching"),
    "SchedulerSilent": ("LessThanThreshold", 1, 300, 3, 3, "breaching"),
}
# Functions with a function URL, and the bounds of their timeout in seconds: at least the time that clients are promised, at
# most the time that a client may cost that reads slowly or is gone.
AT_FUNCTION_URLS = {"ApiStream": (130, 180), "ExportsStream": (240, 300)}
# CloudFront's managed policies: no caching, and every header of the viewer but Host.
NO_CACHE = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
ALL_BUT_HOST = "b689b0a8-53d0-40ab-baf2-68738e2966ac"
# Header with the copy of the viewer's Authorization header, as in shared/lambda/src/http.rs.
COPY = "x-bench-authorization"


class Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short functions: `!Ref X` is {"Ref": X}, `!Sub X` is {"Fn::Sub": X}."""


def short_function(loader, suffix, node):
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


Loader.add_multi_constructor("!", short_function)


class Template:
    def __init__(self, text):
        self.root = yaml.load(text, Loader)  # noqa: S506: a safe loader with constructors that only build values
        self.resources = self.root["Resources"]
        self.problems = []
        self.looked_at = 0

    def of_type(self, kind):
        return {name: found for name, found in self.resources.items() if found["Type"] == kind}

    def properties(self, name):
        return self.resources[name].get("Properties", {})

    def check(self, holds, problem):
        self.looked_at += 1
        if not holds:
            self.problems.append(problem)

    def functions(self):
        return self.of_type("AWS::Serverless::Function")

    def sources(self):
        """Yields the function, the event and the queue of every event source."""
        for function, found in self.functions().items():
            for event in found["Properties"].get("Events", {}).values():
                if event["Type"] == "SQS":
                    yield function, event["Properties"], target(event["Properties"]["Queue"])

    def alarmed(self, queue, metric):
        """Returns true if an alarm watches this metric of this queue."""
        wanted = {"Fn::GetAtt": [queue, "QueueName"]}
        for found in self.of_type("AWS::CloudWatch::Alarm").values():
            text = json.dumps(found["Properties"])
            if json.dumps(wanted) in text and f'"{metric}"' in text:
                return True
        return False


def target(reference):
    """Returns the logical id in `!Ref X` or `!GetAtt X.Arn`, or None for anything else."""
    if isinstance(reference, dict):
        if "Ref" in reference:
            return reference["Ref"]
        if "Fn::GetAtt" in reference:
            return reference["Fn::GetAtt"][0]
    return None


def sub(value):
    """Returns the text of a `!Sub`, or an empty one for anything else."""
    return value.get("Fn::Sub", "") if isinstance(value, dict) else ""


def as_list(value):
    return value if isinstance(value, list) else [value]


def as_text(value):
    return value if isinstance(value, str) else json.dumps(value)


def statements(role):
    for policy in role["Properties"].get("Policies", []):
        yield from as_list(policy["PolicyDocument"]["Statement"])


def concurrency_shown(template, function):
    """Returns the number of samples of one invocation that operators see, or None."""
    shown = template.properties(function).get("Environment", {}).get("Variables", {}).get(CONCURRENCY)
    return None if shown is None else int(shown)


def check_queues(template):
    sources = list(template.sources())
    template.check(len(sources) >= 4, "there are fewer than four event sources")
    queues = template.of_type("AWS::SQS::Queue")
    for function, event, queue in sources:
        timeout = template.properties(function)["Timeout"]
        visibility = template.properties(queue)["VisibilityTimeout"]
        window = event.get("MaximumBatchingWindowInSeconds", 0)
        template.check(
            visibility >= 6 * timeout + window, f"{queue}: visibility {visibility} s is below 6 × {timeout} + {window} s"
        )
        template.check(
            event.get("FunctionResponseTypes") == ["ReportBatchItemFailures"], f"{function}: {queue} without partial failures"
        )
        template.check("MaximumConcurrency" in event.get("ScalingConfig", {}), f"{function}: {queue} without MaximumConcurrency")
        template.check(event.get("BatchSize", 10) <= 10 or window >= 1, f"{function}: batches of more than 10 without a window")
        shown = concurrency_shown(template, function)
        template.check(shown in (None, event.get("BatchSize", 10)), f"{function}: {CONCURRENCY} isn't the batch size")
    for function in ("ApiFunction", "ApiStreamFunction"):
        shown = concurrency_shown(template, function)
        template.check(shown == concurrency_shown(template, "WorkerFunction"), f"{function}: {CONCURRENCY} isn't the worker's")
    read = {queue for _, _, queue in sources}
    received = {target(resource) for statement in statements(template.resources["DeadLettersRole"])
                if "sqs:ReceiveMessage" in as_list(statement["Action"]) for resource in as_list(statement["Resource"])}
    dead = {target(found["Properties"]["RedrivePolicy"]["deadLetterTargetArn"])
            for found in queues.values() if "RedrivePolicy" in found["Properties"]}
    for name, found in queues.items():
        properties = found["Properties"]
        # Dead letters are received by a function that a schedule invokes.
        template.check(name in (received if name in dead else read), f"{name}: no function reads it")
        template.check(not properties.get("FifoQueue"), f"{name}: FIFO")
        template.check(properties.get("SqsManagedSseEnabled"), f"{name}: not encrypted")
        template.check("${AWS::StackName}-" in sub(properties["QueueName"]), f"{name}: its name is not the stack's")
        template.check(
            properties.get("MessageRetentionPeriod") == DEAD_RETENTION_S, f"{name}: messages are not kept for 14 days"
        )
        if name in dead:
            template.check(name not in read, f"{name}: an event source mapping would poll it all the time")
            timeout = template.properties("DeadLettersFunction")["Timeout"]
            template.check(properties["VisibilityTimeout"] > timeout, f"{name}: a message would be received twice within {timeout} s")
            continue
        redrive = properties.get("RedrivePolicy", {})
        template.check(redrive.get("maxReceiveCount") == RECEIVES_MAX, f"{name}: maxReceiveCount is not {RECEIVES_MAX}")
        dead_name = sub(template.properties(target(redrive.get("deadLetterTargetArn")) or name)["QueueName"])
        template.check(dead_name == sub(properties["QueueName"]) + "-dead", f"{name}: its dead-letter queue has another name")
        template.check(template.alarmed(name, "ApproximateAgeOfOldestMessage"), f"{name}: no alarm for the age of its messages")


def check_functions(template):
    roles, groups = [], []
    shared = template.root["Globals"]["Function"]
    template.check(shared["Runtime"] == "provided.al2023", "the runtime is not provided.al2023")
    for name, found in template.functions().items():
        short, properties = name.removesuffix("Function"), found["Properties"]
        role, group = target(properties.get("Role")), target(properties.get("LoggingConfig", {}).get("LogGroup"))
        roles.append(role)
        groups.append(group)
        template.check(role == f"{short}Role", f"{name}: its role is not {short}Role")
        template.check(group is not None and "RetentionInDays" in template.properties(group), f"{name}: no log group with retention")
        if group:
            wanted = "/aws/lambda/" + sub(properties["FunctionName"])
            template.check(sub(template.properties(group)["LogGroupName"]) == wanted, f"{name}: its log group has another name")
        template.check("Policies" not in properties, f"{name}: policies beside its role")
        # Event sources have MaximumConcurrency, API Gateway its throttling.
        at_url = short in AT_FUNCTION_URLS
        template.check(("FunctionUrlConfig" in properties) == at_url, f"{name}: a function URL that is not expected, or none")
        template.check(("ReservedConcurrentExecutions" in properties) == at_url, f"{name}: reserved concurrency")
        template.check(found.get("Metadata", {}).get("BuildMethod") == "rust-cargolambda", f"{name}: no build method")
        api_facing = short in ("Api", "Exports")
        template.check(not api_facing or properties["Timeout"] <= 29, f"{name}: API Gateway does not wait that long")
        variables = dict(shared["Environment"]["Variables"], **properties["Environment"]["Variables"])
        for variable, value in variables.items():
            template.check(not SECRET_NAME.search(variable), f"{name}: {variable} belongs in a secret")
            template.check("{{resolve:" not in json.dumps(value), f"{name}: {variable} would show a secret")
        secrets = variables.get("BENCH_SECRETS", {"Fn::Join": [",", []]})["Fn::Join"][1]
        granted = {target(resource) for statement in statements(template.resources[role])
                   if "secretsmanager:GetSecretValue" in as_list(statement["Action"]) for resource in as_list(statement["Resource"])}
        template.check({target(secret) for secret in secrets} == granted, f"{name}: BENCH_SECRETS and its role differ")
        for secret, readers in READERS.items():
            template.check((secret in granted) == (short in readers), f"{name}: {secret} is not for it, or is missing")
    template.check(len(set(roles)) == len(roles), "functions share a role")
    template.check(len(set(groups)) == len(groups), "functions share a log group")


def check_alarms(template):
    """Checks the alarms that watch all functions at once, and that each alarm notifies the topic."""
    alarms = template.of_type("AWS::CloudWatch::Alarm")
    for name, found in alarms.items():
        properties = found["Properties"]
        template.check({"Ref": "Topic"} in properties.get("AlarmActions", []), f"{name}: notifies no topic")
        template.check(found.get("Condition") == "HasAlarms", f"{name}: can't be turned off")
        for metric in properties.get("Metrics", []):
            template.check("SEARCH" not in metric.get("Expression", ""), f"{name}: alarms can't search")
    for name, rule in ALARM_RULES.items():
        properties = alarms[f"{name}Alarm"]["Properties"]
        parts = [metric["MetricStat"] for metric in properties.get("Metrics", []) if "MetricStat" in metric]
        periods = {part["Period"] for part in parts} or {properties.get("Period")}
        statistics = {part["Stat"] for part in parts} or {properties.get("Statistic")}
        for period in periods:
            found = (
                properties.get("ComparisonOperator"), properties.get("Threshold"), period, properties.get("EvaluationPeriods"),
                properties.get("DatapointsToAlarm", properties.get("EvaluationPeriods")), properties.get("TreatMissingData"),
            )
            template.check(found == rule, f"{name}Alarm: its rule is {found} instead of {rule}")
        template.check(statistics == {"Sum"}, f"{name}Alarm: its statistics are {statistics}")
    # Without dimensions they are of all functions of the account.
    for name in ("Errors", "Throttles"):
        properties = alarms[f"{name}Alarm"]["Properties"]
        watched = (properties.get("Namespace"), properties.get("MetricName"), properties.get("Dimensions"))
        template.check(watched == ("AWS/Lambda", name, None), f"{name}Alarm: it watches {watched}")
    stack = {"Ref": "AWS::StackName"}
    failures = alarms["FailuresAlarm"]["Properties"]
    watched = (failures.get("Namespace"), failures.get("MetricName"), failures.get("Dimensions"))
    template.check(watched == (stack, "Failures", [{"Name": "Stack", "Value": stack}]), f"FailuresAlarm: it watches {watched}")
    silent = json.dumps(alarms["SchedulerSilentAlarm"]["Properties"])
    invoked = {target(found["Properties"]["Target"]["Arn"]) for found in template.of_type("AWS::Scheduler::Schedule").values()}
    for function in invoked:
        template.check(f'"{function}"' in silent, f"{function}: no alarm if its schedules stop")
        settings = [found["Properties"] for found in template.of_type("AWS::Lambda::EventInvokeConfig").values()]
        template.check(any(target(found["FunctionName"]) == function for found in settings), f"{function}: Lambda retries its tasks")
    template.check("DeadLettersFunction" in invoked, "DeadLettersFunction: no schedule invokes it")


def check_function_urls(template):
    """Checks that function URLs accept requests from the distribution only, with bounded duration and concurrency."""
    distribution = template.properties("Distribution")["DistributionConfig"]
    of_distribution = "arn:${AWS::Partition}:cloudfront::${AWS::AccountId}:distribution/${Distribution}"
    permissions = [found["Properties"] for found in template.of_type("AWS::Lambda::Permission").values()]
    conditions = template.root["Conditions"]
    for short, (least, most) in AT_FUNCTION_URLS.items():
        name = f"{short}Function"
        properties = template.properties(name)
        url = properties.get("FunctionUrlConfig", {})
        template.check(url == {"AuthType": "AWS_IAM", "InvokeMode": "RESPONSE_STREAM"}, f"{name}: its URL is {url}")
        template.check(least <= properties["Timeout"] <= most, f"{name}: {properties['Timeout']} s are not {least} to {most}")
        # Expects an `If`: the parameter's value unless it is 0, else no reservation.
        condition, value, otherwise = properties.get("ReservedConcurrentExecutions", {}).get("Fn::If", (None, None, None))
        parameter = target(value)
        template.check(
            conditions.get(condition) == {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, 0]}]}
            and otherwise == {"Ref": "AWS::NoValue"}
            and 0 < template.root["Parameters"].get(parameter, {}).get("Default", 0) <= 50,
            f"{name}: its reserved concurrency is no parameter with a default of 1 to 50 that 0 turns off",
        )
        granted = {permission["Action"]: permission for permission in permissions if target(permission["FunctionName"]) == name}
        template.check(
            set(granted) == {"lambda:InvokeFunction", "lambda:InvokeFunctionUrl"}, f"{name}: CloudFront may not call its URL"
        )
        for action, permission in granted.items():
            template.check(permission["Principal"] == "cloudfront.amazonaws.com", f"{name}: {permission['Principal']} may {action}")
            template.check(sub(permission.get("SourceArn")) == of_distribution, f"{name}: any distribution may {action}")
            only_by_url = {"lambda:InvokeFunctionUrl": ("FunctionUrlAuthType", "AWS_IAM"), "lambda:InvokeFunction": ("InvokedViaFunctionUrl", True)}
            key, wanted = only_by_url.get(action, (None, None))
            template.check(permission.get(key) == wanted, f"{name}: {action} without {key}")
        origins = [origin for origin in distribution["Origins"] if f"{name}Url" in json.dumps(origin["DomainName"])]
        template.check(len(origins) == 1, f"{name}: it is not one origin of the distribution")
        for origin in origins:
            access = template.resources.get(target(origin.get("OriginAccessControlId")), {}).get("Properties", {})
            access = access.get("OriginAccessControlConfig", {})
            settings = [access.get(key) for key in ("OriginAccessControlOriginType", "SigningBehavior", "SigningProtocol")]
            template.check(settings == ["lambda", "always", "sigv4"], f"{name}: requests to its URL are not signed")
            check_behaviors(template, name, [found for found in distribution["CacheBehaviors"] if found["TargetOriginId"] == origin["Id"]])
    template.check(
        distribution["DefaultCacheBehavior"]["TargetOriginId"] == "page", "the distribution's default is not the page"
    )


def check_behaviors(template, name, behaviors):
    """Checks that the viewer's Authorization header is copied before the signature replaces it."""
    template.check(bool(behaviors), f"{name}: no path of the distribution leads to it")
    for behavior in behaviors:
        path = behavior["PathPattern"]
        template.check(set(behavior["AllowedMethods"]) <= {"GET", "HEAD", "OPTIONS"}, f"{path}: bodies can not be signed")
        template.check(behavior["CachePolicyId"] == NO_CACHE, f"{path}: private responses would be cached")
        template.check(behavior["OriginRequestPolicyId"] == ALL_BUT_HOST, f"{path}: headers are lost, or Host is sent")
        functions = [(found["EventType"], target(found["FunctionARN"])) for found in behavior.get("FunctionAssociations", [])]
        template.check(functions == [("viewer-request", "ViewerAuthorization")], f"{path}: Authorization is lost")
    copies = template.properties("ViewerAuthorization")
    template.check(copies.get("AutoPublish") is True, "ViewerAuthorization: not published")
    template.check(f"delete headers['{COPY}']" in copies["FunctionCode"], f"ViewerAuthorization: a viewer may send {COPY}")


def check_money(template):
    """Checks that the topic is notified of AWS costs, and that requests can be limited."""
    budget = template.properties("AwsBudget")
    template.check(target(budget["Budget"]["BudgetLimit"]["Amount"]) == "BudgetUsdPerMonth", "AwsBudget: its limit is not a parameter")
    for told in budget["NotificationsWithSubscribers"]:
        wanted = [{"SubscriptionType": "SNS", "Address": {"Ref": "Topic"}}]
        template.check(told["Subscribers"] == wanted, "AwsBudget: the topic is not notified")
    kinds = {told["Notification"]["NotificationType"] for told in budget["NotificationsWithSubscribers"]}
    template.check(kinds == {"ACTUAL", "FORECASTED"}, "AwsBudget: spent and forecast are not both looked at")
    publishers = {as_text(statement["Principal"].get("Service")) for statement in template.properties("TopicPolicy")["PolicyDocument"]["Statement"]
                  if statement["Effect"] == "Allow" and isinstance(statement["Principal"], dict)}
    template.check(publishers == {"cloudwatch.amazonaws.com", "budgets.amazonaws.com"}, f"TopicPolicy: {publishers} may publish")
    stage = template.properties("HttpStage")["DefaultRouteSettings"]
    template.check(0 < stage["ThrottlingRateLimit"] <= 1000 and 0 < stage["ThrottlingBurstLimit"] <= 2000, "HttpStage: not throttled")
    acl = template.properties("WebAcl")
    template.check(template.resources["WebAcl"]["Condition"] == "HasRateLimit" and acl["Scope"] == "CLOUDFRONT", "WebAcl: no option for CloudFront")
    rates = [rule["Statement"]["RateBasedStatement"] for rule in acl["Rules"] if "Block" in rule["Action"]]
    template.check([target(rate["Limit"]) for rate in rates] == ["WafRateLimit"], "WebAcl: no rate rule")
    attached = json.dumps(template.properties("Distribution")["DistributionConfig"].get("WebACLId", {}))
    template.check('"WebAcl", "Arn"' in attached and '"WebAclArn"' in attached, "Distribution: neither web ACL is attached")
    regions = json.dumps(template.root["Rules"])
    template.check('{"Ref": "AWS::Region"}, "us-east-1"' in regions, "Rules: WafRateLimit is taken outside of us-east-1")


def check_roles(template):
    for name, role in template.of_type("AWS::IAM::Role").items():
        template.check("ManagedPolicyArns" not in role["Properties"], f"{name}: managed policies")
        for statement in statements(role):
            actions, resources = as_list(statement["Action"]), as_list(statement["Resource"])
            template.check(statement["Effect"] == "Allow", f"{name}: only what is allowed is listed")
            for action in actions:
                template.check("*" not in action, f"{name}: {action}")
                template.check("*" not in resources or action in ALLOWED_ON_EVERYTHING, f"{name}: {action} on everything")
            for resource in resources:
                template.check(not isinstance(resource, str) or resource == "*", f"{name}: {resource} is written out")
            template.check(len(set(actions)) == len(actions) and sorted(actions) == actions, f"{name}: actions are not in order: {actions}")


def check_data(template):
    table = template.properties("Table")
    template.check(table["BillingMode"] == "PAY_PER_REQUEST", "Table: not on demand")
    template.check(table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}, "Table: time to live")
    template.check(table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"], "Table: no point-in-time recovery")
    credentials = template.properties("CredentialsTable")
    template.check(
        not credentials["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"], "CredentialsTable: must not have backups"
    )
    for name in template.of_type("AWS::DynamoDB::Table"):
        template.check(template.properties(name)["SSESpecification"]["SSEEnabled"], f"{name}: not encrypted")
    template.check(template.properties("CredentialsKey")["EnableKeyRotation"], "CredentialsKey: no rotation")
    policies = {target(found["Properties"]["Bucket"]): json.dumps(found["Properties"]["PolicyDocument"])
                for found in template.of_type("AWS::S3::BucketPolicy").values()}
    for name in template.of_type("AWS::S3::Bucket"):
        properties = template.properties(name)
        private = properties["PublicAccessBlockConfiguration"]
        template.check(len(private) == 4 and all(private.values()), f"{name}: not private")
        template.check('"aws:SecureTransport": "false"' in policies.get(name, ""), f"{name}: not by TLS only")
        template.check("BucketEncryption" in properties, f"{name}: not encrypted")
    rules = json.dumps(template.properties("Bucket")["LifecycleConfiguration"])
    for prefix in ("uploads/", "exports/", "bodies/"):
        template.check(f'"Prefix": "{prefix}"' in rules, f"Bucket: no rule for {prefix}")
    template.check("AbortIncompleteMultipartUpload" in rules, "Bucket: broken uploads stay")


def check_rest(template):
    for name, found in template.of_type("AWS::Scheduler::Schedule").items():
        template.check("${AWS::StackName}" in sub(found["Properties"].get("Name")), f"{name}: no name per stack")
        task = json.loads(found["Properties"]["Target"]["Input"])
        template.check(set(task) == {"task"}, f"{name}: its input is not a task")
    for name in template.of_type("AWS::Logs::LogGroup"):
        template.check("RetentionInDays" in template.properties(name), f"{name}: logs are kept forever")
    for name in template.of_type("AWS::ApiGatewayV2::Integration"):
        template.check(template.properties(name)["TimeoutInMillis"] <= 30000, f"{name}: longer than API Gateway waits")
    body = template.properties("Dashboard")["DashboardBody"]["Fn::Sub"]
    template.check(bool(json.loads(body)["widgets"]), "Dashboard: no widgets")
    for name, parameter in template.root["Parameters"].items():
        template.check(parameter.get("Description", "").endswith("."), f"parameter {name}: no description")


def check_documents(template, folder):
    """Checks that docs/deploy.md names every parameter and docs/configuration.md every variable."""
    deploy, configuration = (folder / "docs" / name for name in ("deploy.md", "configuration.md"))
    deploy, configuration = deploy.read_text(encoding="utf-8"), configuration.read_text(encoding="utf-8")
    for parameter in template.root["Parameters"]:
        template.check(f"`{parameter}`" in deploy, f"docs/deploy.md does not name {parameter}")
    places = [template.root["Globals"]["Function"], *(found["Properties"] for found in template.functions().values())]
    for variable in sorted({variable for place in places for variable in place["Environment"]["Variables"]}):
        template.check(f"`{variable}`" in configuration, f"docs/configuration.md does not name {variable}")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_template.py TEMPLATE")
    with open(sys.argv[1], encoding="utf-8") as file:
        template = Template(file.read())
    checks = (check_queues, check_functions, check_alarms, check_function_urls, check_money, check_roles, check_data, check_rest)
    for check in checks:
        check(template)
    check_documents(template, pathlib.Path(__file__).resolve().parent.parent)
    for problem in template.problems:
        print(problem, file=sys.stderr)
    if template.problems:
        sys.exit(1)
    print(f"{template.looked_at} facts about {len(template.resources)} resources hold")


if __name__ == "__main__":
    main()
