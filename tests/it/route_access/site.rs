//! A server that others can reach, with callers of every kind, and things that belong to one of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::routing::get;
use axum::{Json, Router};
use bench_domain::run::Owner;
use bench_domain::{RunId, RunLabels, SESSION_COOKIE_CHARS, Secret, SessionId, Subset, Visibility};
use bench_embedded::Durability;
use bench_runs::{Order, Orderer};
use bench_sandy::testing::{self, Options, SandyServer};
use bench_stack::{Stack, StackOptions};
use bench_state::SessionRecord;
use bench_state::access::{AccessEntry, AccessKind, user_entry};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::requests::Request;

const ADMIN_SECRET: &str = "hush-hush";
const TOKEN: &str = "bra_of_a_listed_caller";
const ORIGIN: &str = "https://bench.example";
/// Subject of the user whom everything belongs to.
const OWNER: &str = "s-owner";
const ADMIN_SUBJECT: &str = "s-admin";

/// Kind of caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Anonymous,
    /// A signed-in user without permissions.
    Other,
    /// The signed-in user whom everything belongs to, listed with every permission.
    Owner,
    /// The holder of an access token with every permission.
    Listed,
    /// The holder of the admin secret.
    Admin,
    /// A signed-in user who is an admin.
    AdminUser,
}

impl Who {
    /// Columns of the table.
    pub(super) const COLUMNS: [Self; 5] =
        [Self::Anonymous, Self::Other, Self::Owner, Self::Listed, Self::Admin];

    /// Returns the heading of the column.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Other => "other user",
            Self::Owner => "owner",
            Self::Listed => "listed caller",
            Self::Admin | Self::AdminUser => "admin",
        }
    }

    const fn subject(self) -> Option<&'static str> {
        match self {
            Self::Other => Some("s-other"),
            Self::Owner => Some(OWNER),
            Self::AdminUser => Some(ADMIN_SUBJECT),
            Self::Anonymous | Self::Listed | Self::Admin => None,
        }
    }

    /// Returns the value of the caller's session cookie.
    fn cookie_value(self) -> Option<String> {
        let letter = match self {
            Self::Other => "t",
            Self::Owner => "w",
            Self::AdminUser => "a",
            Self::Anonymous | Self::Listed | Self::Admin => return None,
        };
        Some(letter.repeat(SESSION_COOKIE_CHARS))
    }

    /// Returns the header with the caller's session cookie.
    pub(super) fn cookie(self) -> Option<String> {
        self.cookie_value().map(|value| format!("bench_session={value}"))
    }

    /// Returns the headers that identify the caller.
    pub(super) fn headers(self, _: &Site) -> Vec<(&'static str, String)> {
        match self {
            Self::Anonymous => Vec::new(),
            Self::Listed => vec![("authorization", format!("Bearer {TOKEN}"))],
            Self::Admin => vec![("x-admin-secret", ADMIN_SECRET.to_owned())],
            Self::Other | Self::Owner | Self::AdminUser => {
                vec![("cookie", self.cookie().unwrap()), ("origin", ORIGIN.to_owned())]
            }
        }
    }
}

/// A response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    body: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(super) fn code(&self) -> Option<String> {
        let body: Value = serde_json::from_str(&self.body).ok()?;
        body["code"].as_str().map(str::to_owned)
    }
}

pub(super) struct Site {
    stack: Stack,
    router: Router,
    /// Finished runs of the owner, by their visibility.
    public: RunId,
    unlisted: RunId,
    private: RunId,
    counter: AtomicU64,
    _sandboxes: SandyServer,
    _dir: tempfile::TempDir,
}

impl Site {
    /// Opens the site, finishes a run of each visibility, and stops the workers.
    pub(super) async fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sandboxes = SandyServer::start(Options::default()).await.unwrap();
        let (address, provider) = (sandboxes.base_url(), provider().await);
        let mut options = StackOptions::new(dir.path().join("data"));
        options.durability = Durability::Normal;
        options.local = false;
        options.s3_listener = true;
        options.retry_delay = Duration::ZERO;
        let vars = [
            ("HF_HUB_OFFLINE", "1"),
            ("SKIP_MODEL_SYNC", "1"),
            ("ADMIN_SECRET", ADMIN_SECRET),
            ("ADMIN_SUBJECTS", ADMIN_SUBJECT),
            ("BENCH_ACCESS", "admin,token,provider-key,session"),
            ("FRONTEND_URL", ORIGIN),
            ("BENCH_LIMIT_OPEN_RUNS_PER_OWNER", "100000"),
            ("BENCH_LIMIT_OPEN_RUNS", "100000"),
            ("BENCH_LIMIT_ORDERS_PER_MINUTE_PER_OWNER", "100000"),
            ("BENCH_LIMIT_ORDERS_PER_MINUTE", "100000"),
            ("CHUTES_CLIENT_ID", "cid"),
            ("CHUTES_IDP_URL", &provider),
            ("CHUTES_MODELS_API_URL", &provider),
            ("CHUTES_API_BASE_URL", &format!("{provider}/v1")),
            ("SANDY_BASE_URL", &address),
            ("SANDY_API_KEY", testing::KEY),
        ];
        options.vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut stack = Stack::open(options).await.unwrap();
        stack.start().await.unwrap();
        let [public, unlisted, private] = [Visibility::Public, Visibility::Unlisted, Visibility::Private]
            .map(|visibility| order(&stack, visibility));
        let (public, unlisted, private) = (public.await, unlisted.await, private.await);
        for run in [public, unlisted, private] {
            wait_for_end(&stack, run).await;
        }
        assert!(stack.drain(Duration::from_secs(60)).await, "the workers stop");
        let router = stack.router();
        let counter = AtomicU64::new(0);
        let site =
            Self { stack, router, public, unlisted, private, counter, _sandboxes: sandboxes, _dir: dir };
        site.list(AccessKind::Token, TOKEN).await;
        site.list(AccessKind::User, OWNER).await;
        site
    }

    /// Gives a caller every permission.
    async fn list(&self, kind: AccessKind, text: &str) {
        let subject = (kind == AccessKind::User).then(|| text.to_owned());
        let owner = match &subject {
            Some(subject) => user_entry(subject),
            None => self.stack.api.access.owner_key.owner_of(&Secret::new(text).unwrap()),
        };
        let entry = AccessEntry {
            owner,
            name: text.to_owned(),
            kind,
            subject,
            oracle: true,
            gated: true,
            tasks: true,
            created_at: bench_clock::now(),
            ends_at: None,
        };
        assert!(self.stack.state.add_access(&entry).await.unwrap());
    }

    /// Signs all users in, also those who signed out.
    async fn sign_in(&self) {
        for who in [Who::Other, Who::Owner, Who::AdminUser] {
            let now = bench_clock::now();
            let session = SessionRecord {
                id: SessionId::from_cookie(&who.cookie_value().unwrap()).unwrap(),
                subject: who.subject().unwrap().to_owned(),
                name: "N. N.".to_owned(),
                has_invoke_scope: true,
                created_at: now,
                ends_at: now.plus(Duration::from_secs(3_600)),
            };
            self.stack.state.create_session(&session, None).await.unwrap();
        }
    }

    /// Returns a number that no other call returns.
    pub(super) fn number(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the finished run of this visibility.
    pub(super) const fn finished(&self, visibility: Visibility) -> RunId {
        match visibility {
            Visibility::Public => self.public,
            Visibility::Unlisted => self.unlisted,
            Visibility::Private => self.private,
        }
    }

    /// Creates a run of the owner that stays queued.
    pub(super) async fn queued(&self, visibility: Visibility) -> RunId {
        order(&self.stack, visibility).await
    }

    /// Creates a run of the owner that was canceled.
    pub(super) async fn canceled(&self, visibility: Visibility) -> RunId {
        let run = self.queued(visibility).await;
        bench_api::cancel_run(&self.stack.api, run).await.unwrap();
        run
    }

    /// Sends a request of the owner, which must succeed.
    pub(super) async fn as_owner(&self, request: Request) -> Value {
        let answer = self.send(request, Who::Owner.headers(self)).await;
        assert!((200..300).contains(&answer.status), "{answer:?}");
        answer.json()
    }

    /// Sends a request of the admin, which must succeed.
    pub(super) async fn as_admin(&self, request: Request) -> Value {
        let answer = self.send(request, Who::Admin.headers(self)).await;
        assert!((200..300).contains(&answer.status), "{answer:?}");
        answer.json()
    }

    pub(super) async fn send(&self, request: Request, headers: Vec<(&'static str, String)>) -> Answer {
        Box::pin(self.sign_in()).await;
        let Request { method, uri, content_type, body } = request;
        let mut sent =
            http::Request::builder().method(method.as_str()).uri(uri).header("host", "bench.example");
        if !body.is_empty() {
            sent = sent.header("content-type", content_type);
        }
        for (name, value) in headers {
            sent = sent.header(name, value);
        }
        let response =
            Box::pin(self.router.clone().oneshot(sent.body(Body::from(body)).unwrap())).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 64 << 20).await.unwrap();
        Answer { status, body: String::from_utf8_lossy(&body).into_owned() }
    }
}

/// Starts a provider with one model, and returns its address.
async fn provider() -> String {
    let price = json!({ "per_million_tokens": { "input": { "usd": 0.5 }, "output": { "usd": 2.0 } } });
    let model = json!({
        "name": "a/one", "chute_id": "id-one", "tagline": "t", "user": { "username": "u" }, "logo": null,
        "instances": [{}], "current_estimated_price": price,
    });
    let listed = json!({ "items": [model], "total": 1 });
    let offered = json!({ "data": [{ "id": "a/one", "max_model_len": 1000 }] });
    let router = Router::new()
        .route("/chutes/", get(async move || Json(listed)))
        .route("/v1/models", get(async move || Json(offered)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

/// Orders a run of the owner: one demo item of a benchmark, and one of a judged benchmark.
async fn order(stack: &Stack, visibility: Visibility) -> RunId {
    let order = Order {
        model: "oracle".to_owned(),
        benchmarks: Some(vec!["mmlu_pro".to_owned(), "aa_omniscience".to_owned()]),
        subset: Subset { count: Some(1), seed: Some("s".to_owned()), ..Subset::default() },
        demo: true,
        labels: RunLabels { visibility, ..RunLabels::default() },
        ..Order::default()
    };
    let orderer = Orderer { owner: Owner::User(OWNER.to_owned()), ..Orderer::local() };
    Arc::clone(&stack.orders).create(order, orderer).await.unwrap().run.run.spec.id
}

async fn wait_for_end(stack: &Stack, run: RunId) {
    for _ in 0..2_000 {
        let found = stack.state.run_with_benchmarks(run).await.unwrap().unwrap();
        let unsettled = stack.state.list_unsettled(100).await.unwrap();
        if !found.run.state.status().is_open() && unsettled.iter().all(|left| left.run != run) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the run {run} does not end");
}
