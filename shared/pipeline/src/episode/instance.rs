//! Items with a repository in an image: what an agent's container and that of a verification get.

use bench_benchmarks::{
    CHANGE_TOO_LARGE_EXIT, InstanceCollection, InstanceImage, InstanceProtocol, InstanceScripts,
    InstanceVerification, ItemProblem,
};
use bench_domain::{Agent, Code, EpisodeState, SampleBody, Stage};
use bench_environments::{Labels, TaskFile};
use bench_episodes::{Instance, InstanceTask, Thinker, VerificationTask};
use bench_items::Item;

use super::EpisodeTurn;
use crate::Pipeline;
use crate::error::PipelineError;

/// Limits of a container: memory, processors, and what it may write to its file system.
const MEMORY_BYTES: u64 = 8 << 30;
const CPUS: f64 = 4.0;
const DISK_BYTES_MAX: u64 = 10 << 30;

/// Work in the containers of an item's image.
pub(super) struct ItemInstance {
    pub(super) protocol: &'static dyn InstanceProtocol,
    image: bench_episodes::InstanceImage,
    architecture: Option<&'static str>,
}

/// Work of an agent on an item.
pub(super) struct InstanceWork {
    pub(super) instance: ItemInstance,
    instruction: String,
    preparation: String,
    collection: InstanceCollection,
}

/// Verification of a stored answer.
pub(super) struct VerificationWork {
    pub(super) instance: ItemInstance,
    pub(super) verification: InstanceVerification,
    files: Vec<TaskFile>,
}

impl ItemInstance {
    fn new(protocol: &'static dyn InstanceProtocol, item: &Item) -> Result<Self, ItemProblem> {
        let (image, architecture) = match protocol.image(item)? {
            InstanceImage::Pull { reference, platform } => (
                bench_episodes::InstanceImage::Pulled(reference),
                platform.rsplit_once('/').map(|(_, architecture)| architecture),
            ),
            InstanceImage::Build { files } => (bench_episodes::InstanceImage::Built(task_files(files)), None),
        };
        Ok(Self { protocol, image, architecture })
    }

    fn instance<'a>(&'a self, labels: &'a Labels) -> Instance<'a> {
        Instance {
            image: &self.image,
            architecture: self.architecture,
            // The images of the demo have all that their tests need.
            needs_network: matches!(self.image, bench_episodes::InstanceImage::Pulled(_)),
            memory_bytes: MEMORY_BYTES,
            cpus: CPUS,
            disk_bytes_max: DISK_BYTES_MAX,
            labels,
        }
    }
}

impl InstanceWork {
    pub(super) fn new(protocol: &'static dyn InstanceProtocol, item: &Item) -> Result<Self, ItemProblem> {
        Ok(Self {
            instance: ItemInstance::new(protocol, item)?,
            instruction: protocol.instruction(item)?,
            preparation: protocol.preparation(item)?,
            collection: protocol.collection(item)?,
        })
    }

    pub(super) fn task<'a>(
        &'a self,
        agent: Agent,
        thinker: &'a Thinker,
        labels: &'a Labels,
    ) -> InstanceTask<'a> {
        InstanceTask {
            instance: self.instance.instance(labels),
            agent,
            thinker,
            instruction: &self.instruction,
            folder: self.instance.protocol.folder(),
            preparation: &self.preparation,
            collection: &self.collection.script,
            change_path: self.collection.file,
            too_large_exit: CHANGE_TOO_LARGE_EXIT,
            collection_time_limit: self.collection.time_limit,
            change_bytes_max: self.collection.bytes_max as u64,
            time_limit: self.instance.protocol.time_limit(),
        }
    }
}

impl VerificationWork {
    fn new(
        protocol: &'static dyn InstanceProtocol,
        item: &Item,
        patch: &str,
        scripts: &InstanceScripts,
    ) -> Result<Self, ItemProblem> {
        let mut verification = protocol.verification(item, patch, scripts)?;
        let files = task_files(std::mem::take(&mut verification.files));
        Ok(Self { instance: ItemInstance::new(protocol, item)?, verification, files })
    }

    pub(super) fn task<'a>(&'a self, labels: &'a Labels) -> VerificationTask<'a> {
        VerificationTask {
            instance: self.instance.instance(labels),
            workspace: self.verification.folder,
            files: &self.files,
            command: &self.verification.command,
            time_limit: self.verification.time_limit,
            outputs: self.verification.outputs,
            output_bytes_max: self.verification.output_bytes_max as u64,
        }
    }
}

fn task_files(files: Vec<bench_benchmarks::InstanceFile>) -> Vec<TaskFile> {
    let file = |file: bench_benchmarks::InstanceFile| TaskFile {
        path: file.path,
        is_executable: false,
        bytes: file.text.into_bytes(),
    };
    files.into_iter().map(file).collect()
}

impl Pipeline {
    /// Loads what an agent needs to work on the item. The scripts of the verification must be there, too: nothing is paid for
    /// an item that can't be verified. If that isn't possible, ends the sample and returns `None`.
    pub(super) async fn load_instance(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        protocol: &'static dyn InstanceProtocol,
    ) -> Result<Option<InstanceWork>, PipelineError> {
        if self.load_scripts(turn, state).await?.is_none() {
            return Ok(None);
        }
        let item = turn.claimed.item(&self.blobs).await?;
        self.usable(turn, state, InstanceWork::new(protocol, item)).await
    }

    /// Loads what the verification of the stored answer needs. If that isn't possible, ends the sample and returns `None`.
    pub(super) async fn load_verification(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        protocol: &'static dyn InstanceProtocol,
    ) -> Result<Option<VerificationWork>, PipelineError> {
        let Some(scripts) = self.load_scripts(turn, state).await? else { return Ok(None) };
        let Some(body) = self.handed_over_body(turn, state).await? else { return Ok(None) };
        let item = turn.claimed.item(&self.blobs).await?;
        let work = VerificationWork::new(protocol, item, &body.answer.text, &scripts);
        self.usable(turn, state, work).await
    }

    /// Loads the answer that was handed over. If it is gone, ends the sample and returns `None`.
    pub(super) async fn handed_over_body(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
    ) -> Result<Option<SampleBody>, PipelineError> {
        let stored = &turn.handed_over.answer.body;
        let found = self.blobs.get_body(&turn.claimed.sample, stored.attempt, Some(&stored.sha256)).await?;
        if let Some((body, _)) = found {
            return Ok(Some(body));
        }
        self.end_episode_sandbox(state).await;
        let why = match turn.handed_over.stage {
            Stage::Verification => "the stored answer is gone",
            _ => "the stored task is gone",
        };
        self.end_ungraded(turn, state, Code::StoredDataMissing, why).await?;
        Ok(None)
    }

    async fn load_scripts(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
    ) -> Result<Option<InstanceScripts>, PipelineError> {
        let used = &turn.claimed.benchmark.plan.dataset;
        let item = turn.claimed.item(&self.blobs).await?;
        let stored = bench_datasets::load_official_files(&self.blobs, used, &item.id).await?;
        let (code, why) = match stored.as_ref().map(InstanceScripts::from_files) {
            Some(Ok(scripts)) => return Ok(Some(scripts)),
            Some(Err(problem)) => (Code::InvalidItem, problem.to_string()),
            None => (
                Code::StoredDataMissing,
                "the item's official scripts are gone; order the run again".to_owned(),
            ),
        };
        self.end_episode_sandbox(state).await;
        self.end_ungraded(turn, state, code, &why).await?;
        Ok(None)
    }

    async fn usable<T>(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        work: Result<T, ItemProblem>,
    ) -> Result<Option<T>, PipelineError> {
        match work {
            Ok(work) => Ok(Some(work)),
            Err(problem) => {
                self.end_episode_sandbox(state).await;
                self.end_ungraded(turn, state, Code::InvalidItem, &problem.to_string()).await?;
                Ok(None)
            }
        }
    }
}
