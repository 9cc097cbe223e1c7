//! A sample on a page: whole, or with its longest texts cut where a response can't hold them.

use std::time::Duration;

use bench_web::size::carried_bytes;
use bench_web::views::ItemView;
use serde::Serialize;
use utoipa::ToSchema;

/// Time for which the download address of a stored body is valid.
pub(crate) const BODY_URL_VALID: Duration = Duration::from_secs(300);
/// Bytes reserved for that address.
pub(crate) const ADDRESS_BYTES_MAX: usize = 16 * 1024;
/// Minimum length to which texts are cut, in bytes.
const TEXT_BYTES_MIN: usize = 4_096;

/// A sample on a page.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PageItem {
    /// The sample.
    #[serde(flatten)]
    pub item: ItemView,
    /// Fields that were too long for the response: texts are cut to their beginning, objects are null.
    pub cut: Vec<&'static str>,
    /// Address of the stored prompt and answer (JSON compressed with zstd), valid for five minutes; null unless `cut`
    /// names a field.
    pub body_url: Option<String>,
}

impl PageItem {
    /// Creates an item with nothing cut.
    pub(crate) const fn whole(item: ItemView) -> Self {
        Self { item, cut: Vec::new(), body_url: None }
    }

    /// Cuts the longest texts until the item takes at most `bytes_max` bytes.
    pub(crate) fn shorten_to(&mut self, bytes_max: usize) {
        while carried_bytes(self) > bytes_max && self.halve_longest() {}
        if carried_bytes(self) <= bytes_max {
            return;
        }
        // Cutting texts wasn't enough: fields that aren't text are removed as a whole.
        let item = &mut self.item;
        for (name, field) in [
            ("judge_output", &mut item.judge_output),
            ("detail", &mut item.detail),
            ("item_metadata", &mut item.item_metadata),
        ] {
            if field.take().is_some() {
                self.cut.push(name);
            }
        }
    }

    /// Cuts the longest text in half. Returns false if no text can be cut.
    fn halve_longest(&mut self) -> bool {
        let item = &mut self.item;
        let steps = item.steps.iter_mut().flatten().flat_map(|step| {
            let texts = [Some(&mut step.prompt), Some(&mut step.response), step.reasoning.as_mut()];
            texts.into_iter().flatten().map(|text| ("steps", text))
        });
        let texts = [
            ("prompt", &mut item.prompt),
            ("response", &mut item.response),
            ("expected", &mut item.expected),
            ("reasoning", &mut item.reasoning),
            ("extracted", &mut item.extracted),
            ("reason", &mut item.reason),
            ("error", &mut item.error),
            ("test_code", &mut item.test_code),
            ("judge_prompt", &mut item.judge_prompt),
        ];
        let texts = texts.into_iter().filter_map(|(name, text)| Some((name, text.as_mut()?)));
        let longest = texts.chain(steps);
        let Some((name, text)) = longest.max_by_key(|(_, text)| text.len()) else { return false };
        if text.len() <= TEXT_BYTES_MIN {
            return false;
        }
        let middle = text.len() / 2;
        text.truncate((0..=middle).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
        if !self.cut.contains(&name) {
            self.cut.push(name);
        }
        true
    }
}
