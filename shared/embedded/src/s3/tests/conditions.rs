use std::time::{Duration, SystemTime};

use aws_sdk_s3::primitives::{ByteStream, DateTime};

use super::*;

async fn put(client: &Client, key: &str, content: &'static [u8]) -> String {
    let put = client.put_object().bucket(BUCKET).key(key).body(ByteStream::from_static(content));
    put.send().await.unwrap().e_tag.unwrap()
}

#[tokio::test]
async fn conditional_writes() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let create = || client.put_object().bucket(BUCKET).key("k").if_none_match("*").send();
    create().await.unwrap();
    assert_eq!(failure(create().await), code("PreconditionFailed", 412));
    let tag = put(&client, "k", b"1").await;
    let replace = |tag: String| client.put_object().bucket(BUCKET).key("k").if_match(tag).send();
    assert_eq!(failure(replace("\"0\"".into()).await), code("PreconditionFailed", 412));
    replace(tag.clone()).await.unwrap();
    assert_eq!(failure(replace(tag.clone()).await), code("PreconditionFailed", 412));
    let missing = client.put_object().bucket(BUCKET).key("missing").if_match(tag.clone()).send().await;
    assert_eq!(failure(missing), code("NoSuchKey", 404));
    let delete = client.delete_object().bucket(BUCKET).key("k").if_match(tag).send().await;
    assert_eq!(failure(delete), code("PreconditionFailed", 412));
    let delete = client.delete_object().bucket(BUCKET).key("k").if_match("*").send().await;
    assert_eq!(failure(delete), (None, 200));
    create().await.unwrap();
}

#[tokio::test]
async fn one_of_many_creators_wins() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let creators = (0..32).map(|index: u8| {
        let put = client.put_object().bucket(BUCKET).key("once").if_none_match("*");
        put.body(ByteStream::from(vec![index])).send()
    });
    let results = futures_util::future::join_all(creators).await;
    let winner = results.iter().position(Result::is_ok).unwrap();
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let got = client.get_object().bucket(BUCKET).key("once").send().await.unwrap();
    assert_eq!(got.body.collect().await.unwrap().to_vec(), [winner as u8]);
}

#[tokio::test]
async fn conditional_reads() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let tag = put(&client, "k", b"1").await;
    let get = || client.get_object().bucket(BUCKET).key("k");
    let hour = Duration::from_secs(3600);
    let past = DateTime::from(SystemTime::now() - hour);
    let future = DateTime::from(SystemTime::now() + hour);

    get().if_match(&tag).send().await.unwrap();
    assert_eq!(failure(get().if_match("\"0\"").send().await), code("PreconditionFailed", 412));
    get().if_none_match("\"0\"").send().await.unwrap();
    // A 304 has no body and therefore no code.
    assert_eq!(failure(get().if_none_match(&tag).send().await), (None, 304));
    get().if_modified_since(past).send().await.unwrap();
    assert_eq!(failure(get().if_modified_since(future).send().await), (None, 304));
    get().if_unmodified_since(future).send().await.unwrap();
    assert_eq!(failure(get().if_unmodified_since(past).send().await), code("PreconditionFailed", 412));
    // A tag overrides the date next to it.
    get().if_match(&tag).if_unmodified_since(past).send().await.unwrap();
    get().if_none_match("\"0\"").if_modified_since(future).send().await.unwrap();

    // The time that was sent as Last-Modified counts as "not modified since".
    let modified = *get().send().await.unwrap().last_modified().unwrap();
    assert_eq!(failure(get().if_modified_since(modified).send().await), (None, 304));
    get().if_unmodified_since(modified).send().await.unwrap();
    let head = client.head_object().bucket(BUCKET).key("k").if_none_match(&tag).send().await;
    assert_eq!(failure(head), (None, 304));
}
