use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_s3::types::EncodingType;
use proptest::prelude::*;

use super::*;

/// What a page shows, in order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    Key(String),
    Prefix(String),
}

/// What S3 says a list shows.
fn model(keys: &BTreeSet<String>, prefix: &str, delimiter: Option<&str>, after: Option<&str>) -> Vec<Shown> {
    let mut shown = BTreeMap::new();
    for key in
        keys.iter().filter(|key| key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after))
    {
        let rolled = delimiter.and_then(|delimiter| {
            let at = key[prefix.len()..].find(delimiter)?;
            Some(key[..prefix.len() + at + delimiter.len()].to_owned())
        });
        match rolled {
            Some(rolled) => shown.insert(rolled.clone(), Shown::Prefix(rolled)),
            None => shown.insert(key.clone(), Shown::Key(key.clone())),
        };
    }
    shown.into_values().collect()
}

async fn pages(
    client: &Client,
    prefix: &str,
    delimiter: Option<&str>,
    after: Option<&str>,
    max: i32,
) -> Vec<Vec<Shown>> {
    let mut pages = Vec::new();
    let mut token = None;
    loop {
        let page = client
            .list_objects_v2()
            .bucket(BUCKET)
            .prefix(prefix)
            .set_delimiter(delimiter.map(str::to_owned))
            .set_start_after(after.map(str::to_owned))
            .max_keys(max)
            .set_continuation_token(token)
            .send()
            .await
            .unwrap();
        let keys = page.contents().iter().map(|object| Shown::Key(object.key().unwrap().to_owned()));
        let prefixes =
            page.common_prefixes().iter().map(|prefix| Shown::Prefix(prefix.prefix().unwrap().to_owned()));
        let mut shown: Vec<_> = keys.chain(prefixes).collect();
        shown.sort_by(|a, b| text(a).cmp(text(b)));
        assert_eq!(page.key_count(), Some(shown.len() as i32));
        pages.push(shown);
        token = page.next_continuation_token().map(str::to_owned);
        assert_eq!(page.is_truncated(), Some(token.is_some()));
        if token.is_none() {
            return pages;
        }
    }
}

fn text(shown: &Shown) -> &str {
    match shown {
        Shown::Key(text) | Shown::Prefix(text) => text,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn pages_show_what_the_model_shows(
        keys in prop::collection::btree_set("[ab/]{0,3}[a/é-]", 0..30),
        queries in prop::collection::vec(
            ("[ab/]{0,2}", prop::option::of(prop::sample::select(vec!["/", "a", "//", "é"])),
             prop::option::of("[ab/]{1,3}"), 1_i32..8),
            6
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let (store, client) = with_bucket(dir.path()).await;
            let short = short_client(&store);
            for key in &keys {
                short.put_object().bucket(BUCKET).key(key).send().await.unwrap();
            }
            for (prefix, delimiter, after, max) in queries {
                let pages = pages(&client, &prefix, delimiter, after.as_deref(), max).await;
                let (last, full) = pages.split_last().unwrap();
                assert!(full.iter().all(|page| page.len() == max as usize));
                assert!(last.len() <= max as usize && (full.is_empty() || !last.is_empty()));
                let expected = model(&keys, &prefix, delimiter, after.as_deref());
                assert_eq!(pages.concat(), expected, "{prefix:?} {delimiter:?} {after:?} {max}");
            }
        });
    }
}

#[tokio::test]
async fn edges() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let list = || client.list_objects_v2().bucket(BUCKET);
    let empty = list().send().await.unwrap();
    assert_eq!((empty.key_count(), empty.is_truncated()), (Some(0), Some(false)));
    client.put_object().bucket(BUCKET).key("a b/\u{1}").send().await.unwrap();
    let none = list().max_keys(0).send().await.unwrap();
    assert_eq!((none.key_count(), none.is_truncated()), (Some(0), Some(false)));
    // What XML cannot carry comes encoded when asked for.
    let url = list().encoding_type(EncodingType::Url).send().await.unwrap();
    assert_eq!(url.contents()[0].key(), Some("a%20b/%01"));
    assert_eq!(failure(list().continuation_token("!").send().await), code("InvalidArgument", 400));
    assert_eq!(failure(list().max_keys(-1).send().await), code("InvalidArgument", 400));
}

#[tokio::test]
async fn a_page_has_a_thousand_keys_at_most() {
    let dir = tempfile::tempdir().unwrap();
    let (store, client) = with_bucket(dir.path()).await;
    let short = short_client(&store);
    let puts = (0..1001).map(|index| short.put_object().bucket(BUCKET).key(format!("{index:05}")).send());
    for put in futures_util::future::join_all(puts).await {
        put.unwrap();
    }
    let pages = pages(&client, "", None, None, 5000).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [1000, 1]);
}
