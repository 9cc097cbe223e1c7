//! Tests the client with servers that answer correctly, incorrectly, partially and not at all.

// Clippy recognizes only functions marked as tests, not their helpers.
#![allow(clippy::unwrap_used)]

mod answers;
mod broken;
mod catalog;
mod keys;
mod refusals;
mod server;

use bench_domain::{Answer, Generation, Prompt};
use bench_inference::{ChatClient, ChatRequest, Endpoint, Failure, HttpOptions};
use tokio::time::Instant;

fn client() -> ChatClient {
    ChatClient::new(HttpOptions::default())
}

async fn ask_with(
    client: &ChatClient,
    endpoint: &Endpoint,
    generation: &Generation,
    deadline: Option<Instant>,
) -> Result<Answer, Failure> {
    let prompt = Prompt::user("What is 6 × 7?");
    let request = ChatRequest {
        model: "a/b",
        prompt: &prompt,
        generation,
        reply_schema: None,
        tools: None,
        is_continued: false,
    };
    client.complete(endpoint, &request, deadline).await
}

async fn ask(client: &ChatClient, endpoint: &Endpoint) -> Result<Answer, Failure> {
    ask_with(client, endpoint, &Generation::default(), None).await
}
