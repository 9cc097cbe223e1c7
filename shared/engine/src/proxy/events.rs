//! Events of the engine, of which a sandbox sees those of its own objects.

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http::Response;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::body::Frame;
use serde_json::Value;

use super::Shared;
use super::dispatch::Call;
use super::lists::add_label_filter;
use crate::client::{AnyBody, BoxError, full};
use crate::labels::Owner;
use crate::refusal::Refusal;

/// Maximum size of one event, in bytes.
const EVENT_BYTES_MAX: usize = 1 << 20;

impl Shared {
    /// Passes on events, line by line.
    pub(super) async fn events(&self, mut call: Call) -> Result<Response<AnyBody>, Refusal> {
        add_label_filter(&mut call.query, &self.rules.owner)?;
        let response = self.forward(call.method.clone(), &call.address(""), full(""), self.stream()).await?;
        if !response.status().is_success() {
            return Ok(response);
        }
        let (mut parts, body) = response.into_parts();
        parts.headers.remove(http::header::CONTENT_LENGTH);
        let state = (BodyStream::new(body), BytesMut::new(), self.rules.owner.clone());
        let lines = stream::unfold(state, |(mut body, mut buffer, owner)| async move {
            loop {
                let frame = match body.next().await? {
                    Ok(frame) => frame,
                    Err(error) => return Some((Err(error), (body, buffer, owner))),
                };
                let Ok(data) = frame.into_data() else { continue };
                buffer.extend_from_slice(&data);
                let own = own_lines(&mut buffer, &owner);
                if buffer.len() > EVENT_BYTES_MAX {
                    let error: BoxError = "an event of the engine is too long".into();
                    return Some((Err(error), (body, buffer, owner)));
                }
                if !own.is_empty() {
                    return Some((Ok(Frame::data(own)), (body, buffer, owner)));
                }
            }
        });
        Ok(Response::from_parts(parts, StreamBody::new(lines).boxed_unsync()))
    }
}

/// Takes the complete lines out of a buffer and returns those of the owner's objects.
fn own_lines(buffer: &mut BytesMut, owner: &Owner) -> Bytes {
    let Some(end) = buffer.iter().rposition(|byte| *byte == b'\n') else { return Bytes::new() };
    let complete = buffer.split_to(end + 1);
    let mut own = BytesMut::new();
    for line in complete.split_inclusive(|byte| *byte == b'\n') {
        let event: Value = serde_json::from_slice(line).unwrap_or(Value::Null);
        if owner.owns(&event["Actor"]["Attributes"]) {
            own.extend_from_slice(line);
        }
    }
    own.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_others_are_dropped() {
        let event = |sandbox: &str| {
            format!(
                r#"{{"Type":"container","Actor":{{"Attributes":{{"bench-runner.instance":"i1","bench-runner.sandbox":"{sandbox}"}}}}}}"#
            )
        };
        let owner = Owner::new("i1", "s1").unwrap();
        let text = format!("{}\n{}\nbroken\n{}", event("s2"), event("s1"), event("s1"));
        let mut buffer = BytesMut::from(text.as_bytes());
        assert_eq!(own_lines(&mut buffer, &owner), format!("{}\n", event("s1")));
        assert_eq!(buffer, event("s1").as_bytes());
    }
}
