//! A provider that answers as its script says.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, StatusCode, Uri};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

/// Behavior of the provider.
pub(super) struct Script {
    pub(super) description_status: u16,
    /// Issuer in the description; `None` for the provider's own.
    pub(super) issuer: Option<String>,
    pub(super) token_status: u16,
    /// Length of the access token.
    pub(super) token_bytes: usize,
    pub(super) scope: String,
    pub(super) expires_in: i64,
    pub(super) has_id_token: bool,
    pub(super) has_nonce: bool,
    pub(super) id_issuer: Option<String>,
    pub(super) id_audience: String,
    pub(super) signs_with_stranger: bool,
    /// Seconds by which the provider's clock is ahead.
    pub(super) clock_offset: i64,
    pub(super) user_status: u16,
    pub(super) user_subject: String,
    /// Error of renewals; `None` renews.
    pub(super) renewal_error: Option<(u16, &'static str)>,
    /// True if renewals are answered later.
    pub(super) holds_renewals: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            description_status: 200,
            issuer: None,
            token_status: 200,
            token_bytes: 32,
            scope: "openid profile chutes:invoke account:read".to_owned(),
            expires_in: 3_600,
            has_id_token: true,
            has_nonce: true,
            id_issuer: None,
            id_audience: "bench".to_owned(),
            signs_with_stranger: false,
            clock_offset: 0,
            user_status: 200,
            user_subject: "user-1".to_owned(),
            renewal_error: None,
            holds_renewals: false,
        }
    }
}

struct Shared {
    url: String,
    script: Script,
    key: Signer,
    nonces: Vec<(String, String, String)>,
    refresh: u32,
    renewals: u32,
    revoked: u32,
    key_reads: u32,
}

struct Signer {
    kid: String,
    pair: EcdsaKeyPair,
}

impl Signer {
    fn new(kid: &str) -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap();
        Self { kid: kid.to_owned(), pair }
    }

    fn public(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let part = |range: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(&point[range]);
        json!({ "kty": "EC", "crv": "P-256", "kid": self.kid, "use": "sig", "x": part(1..33), "y": part(33..65) })
    }

    fn sign(&self, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({ "alg": "ES256", "kid": self.kid, "typ": "JWT" });
        let signed = format!("{}.{}", part(&header), part(claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

type Handle = Arc<Mutex<Shared>>;

/// A provider that answers as its script says.
pub(super) struct Provider {
    url: String,
    shared: Handle,
    task: tokio::task::JoinHandle<()>,
}

impl Provider {
    pub(super) async fn start(script: Script) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Mutex::new(Shared {
            url: url.clone(),
            script,
            key: Signer::new("one"),
            nonces: Vec::new(),
            refresh: 0,
            renewals: 0,
            revoked: 0,
            key_reads: 0,
        }));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared, task }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn stop(&self) {
        self.task.abort();
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.lock().script);
    }

    pub(super) fn rotate_keys(&self) {
        self.lock().key = Signer::new("two");
    }

    pub(super) fn revoked(&self) -> u32 {
        self.lock().revoked
    }

    pub(super) fn renewals(&self) -> u32 {
        self.lock().renewals
    }

    pub(super) fn key_reads(&self) -> u32 {
        self.lock().key_reads
    }

    /// Lets the user agree, and returns the callback's path and query.
    pub(super) fn authorize(&self, address: &str) -> String {
        let uri: Uri = address.parse().unwrap();
        let query = uri.query().unwrap();
        let value = |name| parameter(query, name);
        assert_eq!(value("redirect_uri"), "http://localhost:8000/api/auth/callback");
        let mut shared = self.lock();
        let code = format!("code-{}", shared.nonces.len());
        shared.nonces.push((code.clone(), value("nonce"), value("code_challenge")));
        format!("/api/auth/callback?code={code}&state={}", value("state"))
    }
}

fn parameter(query: &str, name: &str) -> String {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find_map(|(found, value)| (found == name).then(|| value.into_owned())).unwrap_or_default()
}

async fn answer(State(shared): State<Handle>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let form = String::from_utf8(body.to_vec()).unwrap();
    let is_renewal = parameter(&form, "grant_type") == "refresh_token";
    let (status, body) = answer_now(&mut shared.lock().unwrap(), &uri, &headers, &form);
    while is_renewal && shared.lock().unwrap().script.holds_renewals {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
}

fn answer_now(shared: &mut Shared, uri: &Uri, headers: &HeaderMap, form: &str) -> (u16, Value) {
    match uri.path() {
        "/.well-known/openid-configuration" => (shared.script.description_status, description(shared)),
        "/idp/keys" => {
            shared.key_reads += 1;
            (200, json!({ "keys": [shared.key.public()] }))
        }
        "/idp/token" if parameter(form, "grant_type") == "refresh_token" => renew(shared, form),
        "/idp/token" => exchange(shared, form),
        "/idp/userinfo" => {
            assert!(headers["authorization"].to_str().unwrap().starts_with("Bearer access-"));
            let user = json!({ "sub": shared.script.user_subject, "username": "نورة\u{202e} 🧪" });
            (shared.script.user_status, user)
        }
        "/idp/token/revoke" => {
            assert_eq!(parameter(form, "client_id"), "bench");
            shared.revoked += 1;
            (200, json!({}))
        }
        other => panic!("{other}"),
    }
}

fn description(shared: &Shared) -> Value {
    let at = |path: &str| format!("{}{path}", shared.url);
    json!({
        "issuer": shared.script.issuer.as_ref().unwrap_or(&shared.url),
        "authorization_endpoint": at("/idp/authorize"), "token_endpoint": at("/idp/token"),
        "userinfo_endpoint": at("/idp/userinfo"), "revocation_endpoint": at("/idp/token/revoke"),
        "jwks_uri": at("/idp/keys"),
    })
}

fn exchange(shared: &mut Shared, form: &str) -> (u16, Value) {
    assert_eq!(parameter(form, "client_secret"), "client-secret");
    let code = parameter(form, "code");
    let (_, nonce, challenge) = shared.nonces.iter().find(|(known, ..)| *known == code).unwrap().clone();
    let verifier = parameter(form, "code_verifier");
    let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    assert_eq!(URL_SAFE_NO_PAD.encode(digest), challenge);
    let script = &shared.script;
    if script.token_status != 200 {
        return (script.token_status, json!({ "error": "invalid_grant", "error_description": "evil" }));
    }
    let now = bench_clock::now().as_seconds() + script.clock_offset;
    let mut claims = json!({
        "iss": script.id_issuer.as_ref().unwrap_or(&shared.url), "sub": "user-1", "aud": script.id_audience,
        "iat": now, "exp": now + 300,
    });
    if script.has_nonce {
        claims["nonce"] = nonce.into();
    }
    let stranger = Signer::new(&shared.key.kid);
    let signer = if script.signs_with_stranger { &stranger } else { &shared.key };
    let mut tokens = tokens(shared);
    if script.has_id_token {
        tokens["id_token"] = signer.sign(&claims).into();
    }
    (200, tokens)
}

fn renew(shared: &mut Shared, form: &str) -> (u16, Value) {
    shared.renewals += 1;
    if let Some((status, error)) = shared.script.renewal_error {
        return (status, json!({ "error": error }));
    }
    // Each refresh token is good once.
    if parameter(form, "refresh_token") != format!("refresh-{}", shared.refresh) {
        return (400, json!({ "error": "invalid_grant" }));
    }
    shared.refresh += 1;
    (200, tokens(shared))
}

fn tokens(shared: &Shared) -> Value {
    let script = &shared.script;
    let access = format!("access-{}{}", shared.refresh, "x".repeat(script.token_bytes));
    json!({
        "access_token": access, "refresh_token": format!("refresh-{}", shared.refresh), "token_type": "Bearer",
        "expires_in": script.expires_in, "scope": script.scope,
    })
}
