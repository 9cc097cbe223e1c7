use serde_json::json;

use crate::support::Place;

#[test]
fn keys_are_made_rotated_and_never_shown_in_private() {
    let place = Place::new();
    let first = place.json(&["keys", "--json"]);
    let key = first["keys"][0]["public_key"].as_str().unwrap().to_owned();
    assert_eq!(
        (first["keys"].as_array().unwrap().len(), &first["keys"][0]["status"]),
        (1, &json!("current"))
    );
    let again = place.json(&["keys", "show", "--json"]);
    assert_eq!(first, again);
    let rotated = place.json(&["keys", "rotate", "--json"]);
    assert_eq!(rotated["keys"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&rotated["keys"][1]["public_key"], &rotated["keys"][1]["status"]),
        (&json!(key), &json!("retired"))
    );
    let private = std::fs::read_to_string(place.path("data/keys/signing-key.pem")).unwrap();
    let secret = private.lines().nth(1).unwrap();
    let done = place.bench(&["keys"]);
    assert!(done.out.contains(&key) && !format!("{}{}", done.out, done.err).contains(secret));
}

#[test]
fn what_is_no_key_is_wrong_usage() {
    let place = Place::new();
    place.bench(&["keys", "pin", "nonsense"]).refused(2, "neither an Ed25519 public key nor a file");
    place.write("junk.txt", "junk");
    place.bench(&["keys", "pin", "junk.txt"]).refused(2, "holds no Ed25519 public key");
    place.bench(&["keys", "unpin", "0123456789ab"]).refused(2, "no pinned key");
    place.bench(&["verify", "x.zip", "--public-key", "nonsense"]).refused(2, "neither an Ed25519 public key");
}
