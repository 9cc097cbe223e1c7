//! Receipt handles, which identify a message and one of its receives.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::error::SqsError;

const BYTES: usize = 8 + 8 + 4 + 8;

/// One receive of one message. Only the handle of the latest receive has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Receipt {
    pub(super) queue: i64,
    pub(super) seq: i64,
    /// Receive count of the message at delivery.
    pub(super) receives: u32,
    /// Part of the message's random id, since sequence numbers of deleted messages may be reused.
    pub(super) tag: u64,
}

impl Receipt {
    pub(super) fn to_handle(self) -> String {
        let mut bytes = [0_u8; BYTES];
        let fields = self.queue.to_be_bytes().into_iter().chain(self.seq.to_be_bytes());
        let fields = fields.chain(self.receives.to_be_bytes()).chain(self.tag.to_be_bytes());
        for (byte, field) in bytes.iter_mut().zip(fields) {
            *byte = field;
        }
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub(super) fn parse(handle: &str) -> Result<Self, SqsError> {
        let bytes: [u8; BYTES] = URL_SAFE_NO_PAD
            .decode(handle)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(SqsError::invalid_receipt_handle)?;
        let (queue, rest) = bytes.split_first_chunk().ok_or_else(SqsError::invalid_receipt_handle)?;
        let (seq, rest) = rest.split_first_chunk().ok_or_else(SqsError::invalid_receipt_handle)?;
        let (receives, rest) = rest.split_first_chunk().ok_or_else(SqsError::invalid_receipt_handle)?;
        let (tag, _) = rest.split_first_chunk().ok_or_else(SqsError::invalid_receipt_handle)?;
        Ok(Self {
            queue: i64::from_be_bytes(*queue),
            seq: i64::from_be_bytes(*seq),
            receives: u32::from_be_bytes(*receives),
            tag: u64::from_be_bytes(*tag),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(queue: i64, seq: i64, receives: u32, tag: u64) {
            let receipt = Receipt { queue, seq, receives, tag };
            prop_assert_eq!(Receipt::parse(&receipt.to_handle()).unwrap(), receipt);
        }

        #[test]
        fn nothing_panics(handle in ".{0,60}") {
            let _ = Receipt::parse(&handle);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in ["", "x", "!!!!", "AAAA"] {
            assert_eq!(Receipt::parse(bad).unwrap_err().code, "ReceiptHandleIsInvalid");
        }
    }
}
