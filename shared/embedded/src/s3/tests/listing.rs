use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Returns the keys of each page.
async fn pages(client: &Client, prefix: &str, max: i32) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut token = None;
    loop {
        let list = client.list_objects_v2().bucket(BUCKET).prefix(prefix).max_keys(max);
        let page = list.set_continuation_token(token).send().await.unwrap();
        let keys = page.contents().iter().map(|object| object.key().unwrap().to_owned());
        let keys: Vec<_> = keys.collect();
        assert_eq!(page.key_count(), Some(keys.len() as i32));
        pages.push(keys);
        token = page.next_continuation_token().map(str::to_owned);
        assert_eq!(page.is_truncated(), Some(token.is_some()));
        if token.is_none() {
            return pages;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn pages_show_the_keys_with_the_prefix_in_order(
        keys in prop::collection::btree_set("[ab/]{0,3}[a/é-]", 0..30),
        queries in prop::collection::vec(("[ab/]{0,2}", 1_i32..8), 6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let (store, client) = with_bucket(dir.path()).await;
            let fast_path = fast_client(&store);
            let keys: BTreeSet<String> = keys;
            for key in &keys {
                fast_path.put_object().bucket(BUCKET).key(key).send().await.unwrap();
            }
            for (prefix, max) in queries {
                let pages = pages(&client, &prefix, max).await;
                let (last, full) = pages.split_last().unwrap();
                assert!(full.iter().all(|page| page.len() == max as usize));
                assert!(last.len() <= max as usize && (full.is_empty() || !last.is_empty()));
                let expected: Vec<_> = keys.iter().filter(|key| key.starts_with(&prefix)).cloned().collect();
                assert_eq!(pages.concat(), expected, "{prefix:?} {max}");
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
    client.put_object().bucket(BUCKET).key("a b/c").send().await.unwrap();
    let none = list().max_keys(0).send().await.unwrap();
    assert_eq!((none.key_count(), none.is_truncated()), (Some(0), Some(false)));
    assert_eq!(failure(list().continuation_token("!").send().await), code("InvalidArgument", 400));
    assert_eq!(failure(list().max_keys(-1).send().await), code("InvalidArgument", 400));
}

#[tokio::test]
async fn a_page_has_a_thousand_keys_at_most() {
    let dir = tempfile::tempdir().unwrap();
    let (store, client) = with_bucket(dir.path()).await;
    let fast_path = fast_client(&store);
    let puts = (0..1001).map(|index| fast_path.put_object().bucket(BUCKET).key(format!("{index:05}")).send());
    for put in futures_util::future::join_all(puts).await {
        put.unwrap();
    }
    let pages = pages(&client, "", 5000).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [1000, 1]);
}
