//! Ed25519, canonical JSON and the signed ZIP.
