//! Checks of ID tokens: signature, issuer, audience, times, nonce.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bench_domain::Timestamp;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::Value;

/// Seconds by which the provider's clock may differ from this one.
const CLOCK_SKEW_S: i64 = 300;
/// Maximum length of a token in bytes.
const TOKEN_BYTES_MAX: usize = 64 * 1024;

/// Reason why an ID token isn't accepted, for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdTokenError {
    /// The token isn't signed with a known key. The provider may have new keys.
    #[error("it is signed with an unknown key")]
    UnknownKey,
    /// Anything else.
    #[error("{0}")]
    Invalid(&'static str),
}

/// Values that an ID token must have.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// Name of the provider.
    pub issuer: &'a str,
    /// Name of this program at the provider.
    pub client_id: &'a str,
    /// Nonce of the attempt.
    pub nonce: &'a str,
    /// Present time.
    pub now: Timestamp,
}

/// Public keys of a provider.
#[derive(Debug, Clone, Default)]
pub struct PublicKeys(Vec<Jwk>);

/// Public key in JSON. Fields of other kinds of keys are absent.
#[derive(Debug, Clone, Deserialize)]
struct Jwk {
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default, rename = "use")]
    purpose: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default)]
    crv: Option<String>,
    #[serde(default)]
    n: Option<String>,
    #[serde(default)]
    e: Option<String>,
    #[serde(default)]
    x: Option<String>,
    #[serde(default)]
    y: Option<String>,
}

impl PublicKeys {
    /// Reads a set of keys. Keys of unknown kinds are left out.
    ///
    /// # Errors
    /// Describes the problem, for the log.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let set: Set = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let keys = set.keys.into_iter().filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        Ok(Self(keys.filter(|key| key.purpose.as_deref() != Some("enc")).collect()))
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    crit: Option<Value>,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: Audience,
    exp: f64,
    #[serde(default)]
    nbf: Option<f64>,
    #[serde(default)]
    iat: Option<f64>,
    #[serde(default)]
    nonce: Option<String>,
    #[serde(default)]
    azp: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// Checks an ID token and returns its subject.
///
/// # Errors
/// Returns the first check that failed.
pub fn verify(token: &str, keys: &PublicKeys, expected: Expected<'_>) -> Result<String, IdTokenError> {
    let invalid = IdTokenError::Invalid;
    if token.len() > TOKEN_BYTES_MAX {
        return Err(invalid("it is too long"));
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(invalid("it isn't a signed token"))?;
    let (header, claims) = signed.split_once('.').ok_or(invalid("it isn't a signed token"))?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| invalid("it isn't in base64url"));
    let header: Header =
        serde_json::from_slice(&decode(header)?).map_err(|_| invalid("its header can't be read"))?;
    if header.crit.is_some() {
        return Err(invalid("its header has an extension that must be understood"));
    }
    check_signature(&header, keys, signed.as_bytes(), &decode(signature)?)?;
    let claims: Claims =
        serde_json::from_slice(&decode(claims)?).map_err(|_| invalid("its claims can't be read"))?;
    check_claims(&claims, expected)?;
    Ok(claims.sub)
}

fn check_claims(claims: &Claims, expected: Expected<'_>) -> Result<(), IdTokenError> {
    let invalid = |problem| Err(IdTokenError::Invalid(problem));
    if claims.iss.trim_end_matches('/') != expected.issuer {
        return invalid("it is of another issuer");
    }
    let (is_for_us, others) = match &claims.aud {
        Audience::One(audience) => (audience == expected.client_id, false),
        Audience::Several(all) => (all.iter().any(|one| one == expected.client_id), all.len() > 1),
    };
    if !is_for_us {
        return invalid("it is for another program");
    }
    if (others || claims.azp.is_some()) && claims.azp.as_deref() != Some(expected.client_id) {
        return invalid("it was issued to another program");
    }
    let (now, skew) = (expected.now.as_seconds() as f64, CLOCK_SKEW_S as f64);
    if now >= claims.exp + skew {
        return invalid("it has expired");
    }
    if claims.nbf.into_iter().chain(claims.iat).any(|from| now < from - skew) {
        return invalid("it isn't valid yet");
    }
    // Both are derived by HMAC from a secret that the attacker would have to know, so the comparison's time reveals nothing.
    if claims.nonce.as_deref() != Some(expected.nonce) {
        return invalid("it belongs to another sign-in");
    }
    Ok(())
}

fn check_signature(
    header: &Header,
    keys: &PublicKeys,
    signed: &[u8],
    signature: &[u8],
) -> Result<(), IdTokenError> {
    let alg = header.alg.as_str();
    if !ALGORITHMS.contains(&alg) {
        return Err(IdTokenError::Invalid("it is signed with a method that isn't accepted"));
    }
    let fits = |key: &&Jwk| {
        let is_named = header.kid.is_none() || key.kid == header.kid;
        is_named && key.alg.as_deref().is_none_or(|own| own == alg)
    };
    let mut candidates = keys.0.iter().filter(fits).peekable();
    if candidates.peek().is_none() {
        return Err(IdTokenError::UnknownKey);
    }
    if candidates.any(|key| key.verifies(alg, signed, signature).is_some()) {
        return Ok(());
    }
    // Without the name of a key, it may be signed with a new one.
    Err(if header.kid.is_none() {
        IdTokenError::UnknownKey
    } else {
        IdTokenError::Invalid("its signature is wrong")
    })
}

/// Accepted signature methods. None with a shared secret, and never `none`.
const ALGORITHMS: [&str; 9] =
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

impl Jwk {
    /// Returns `Some` if this key verifies a signature.
    fn verifies(&self, alg: &str, signed: &[u8], signature: &[u8]) -> Option<()> {
        let decode = |part: &Option<String>| URL_SAFE_NO_PAD.decode(part.as_deref()?).ok();
        if self.kty == "RSA" {
            let parameters: &signature::RsaParameters = match alg {
                "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
                "RS384" => &signature::RSA_PKCS1_2048_8192_SHA384,
                "RS512" => &signature::RSA_PKCS1_2048_8192_SHA512,
                "PS256" => &signature::RSA_PSS_2048_8192_SHA256,
                "PS384" => &signature::RSA_PSS_2048_8192_SHA384,
                "PS512" => &signature::RSA_PSS_2048_8192_SHA512,
                _ => return None,
            };
            let key = RsaPublicKeyComponents { n: decode(&self.n)?, e: decode(&self.e)? };
            return key.verify(parameters, signed, signature).ok();
        }
        let x = decode(&self.x)?;
        let (algorithm, key): (&dyn signature::VerificationAlgorithm, Vec<u8>) =
            match (self.kty.as_str(), self.crv.as_deref()?, alg) {
                ("EC", "P-256", "ES256") => {
                    (&signature::ECDSA_P256_SHA256_FIXED, point(x, decode(&self.y)?, 32)?)
                }
                ("EC", "P-384", "ES384") => {
                    (&signature::ECDSA_P384_SHA384_FIXED, point(x, decode(&self.y)?, 48)?)
                }
                ("OKP", "Ed25519", "EdDSA") => (&signature::ED25519, x),
                _ => return None,
            };
        UnparsedPublicKey::new(algorithm, key).verify(signed, signature).ok()
    }
}

/// Returns a point of a curve in the uncompressed form.
fn point(x: Vec<u8>, y: Vec<u8>, bytes: usize) -> Option<Vec<u8>> {
    (x.len() == bytes && y.len() == bytes).then(|| [vec![4], x, y].concat())
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
    use serde_json::json;

    use super::*;

    struct Signer(EcdsaKeyPair);

    impl Signer {
        fn new() -> Self {
            let random = SystemRandom::new();
            let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            Self(EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap())
        }

        fn keys(&self, kid: &str) -> PublicKeys {
            let point = self.0.public_key().as_ref();
            let part = |range: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(&point[range]);
            let key = json!({"kty": "EC", "crv": "P-256", "kid": kid, "x": part(1..33), "y": part(33..65)});
            let unknown = json!({"kty": "new", "kid": 7});
            PublicKeys::read(json!({"keys": [unknown, key]}).to_string().as_bytes()).unwrap()
        }

        fn sign(&self, header: &Value, claims: &Value) -> String {
            let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let signed = format!("{}.{}", part(header), part(claims));
            let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
        }
    }

    fn expected() -> Expected<'static> {
        let now = Timestamp::from_micros(10_000 * 1_000_000);
        Expected { issuer: "https://idp.example", client_id: "bench", nonce: "n", now }
    }

    fn claims() -> Value {
        json!({"iss": "https://idp.example", "sub": "s-1", "aud": "bench", "exp": 10_060, "iat": 10_000, "nonce": "n"})
    }

    #[test]
    fn a_right_token_names_its_subject() {
        let signer = Signer::new();
        let keys = signer.keys("k");
        for header in [json!({"alg": "ES256", "kid": "k"}), json!({"alg": "ES256"})] {
            let token = signer.sign(&header, &claims());
            assert_eq!(verify(&token, &keys, expected()).unwrap(), "s-1", "{header}");
        }
    }

    #[test]
    fn each_claim_is_checked() {
        let signer = Signer::new();
        let keys = signer.keys("k");
        let checked = |field: &str, value: Value| {
            let mut changed = claims();
            changed[field] = value;
            verify(&signer.sign(&json!({"alg": "ES256", "kid": "k"}), &changed), &keys, expected())
        };
        for (field, value) in [
            ("iss", json!("https://evil.example")),
            ("aud", json!("other")),
            ("aud", json!(["bench", "other"])),
            ("aud", json!([])),
            ("azp", json!("other")),
            ("exp", json!(9_700)),
            ("exp", json!("10060")),
            ("exp", Value::Null),
            ("iat", json!(10_301)),
            ("nbf", json!(10_301)),
            ("nonce", json!("of another")),
            ("nonce", Value::Null),
            ("sub", Value::Null),
        ] {
            let checked = checked(field, value.clone());
            assert!(matches!(checked, Err(IdTokenError::Invalid(_))), "{field} {value}: {checked:?}");
        }
        // Clocks may differ by five minutes.
        for (field, value) in
            [("exp", json!(9_701)), ("iat", json!(10_300)), ("nbf", json!(10_300)), ("aud", json!(["bench"]))]
        {
            assert!(checked(field, value).is_ok(), "{field}");
        }
    }

    #[test]
    fn signatures_are_of_the_providers_keys() {
        let (signer, other) = (Signer::new(), Signer::new());
        let header = json!({"alg": "ES256", "kid": "k"});
        let token = signer.sign(&header, &claims());
        let wrong = IdTokenError::Invalid("its signature is wrong");
        assert_eq!(verify(&token, &other.keys("k"), expected()), Err(wrong.clone()));
        assert_eq!(verify(&token, &signer.keys("new"), expected()), Err(IdTokenError::UnknownKey));
        assert_eq!(verify(&token, &PublicKeys::default(), expected()), Err(IdTokenError::UnknownKey));
        let mut forged: Vec<&str> = token.split('.').collect();
        let other_claims = URL_SAFE_NO_PAD.encode(claims().to_string().replace("s-1", "s-2"));
        forged[1] = &other_claims;
        assert_eq!(verify(&forged.join("."), &signer.keys("k"), expected()), Err(wrong));
        for alg in ["none", "HS256", "ES512", "RS256", "EdDSA"] {
            let token = signer.sign(&json!({"alg": alg, "kid": "k"}), &claims());
            assert!(verify(&token, &signer.keys("k"), expected()).is_err(), "{alg}");
        }
        for token in ["", ".", "..", "a.b.c", &token[..token.len() - 2]] {
            assert!(verify(token, &signer.keys("k"), expected()).is_err(), "{token}");
        }
    }
}
