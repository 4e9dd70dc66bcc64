//! Files for engines that run many machines: an array of Slurm, an Indexed Job of Kubernetes.
//!
//! They only start `schedlab sweep run FOLDER --shard N` N times; the engine gives each its index.

use std::path::Path;

use crate::error::Error;
use crate::store::Store;

/// The engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cluster {
    /// `sbatch FILE`.
    Slurm,
    /// `kubectl apply -f FILE`.
    Kubernetes,
}

/// The file that starts `shards` shares of a sweep with the given CPUs each. `command` is how they call schedlab,
/// `image` its container, for Kubernetes. The folder must be on a shared file system.
///
/// # Errors
/// More shares than chunks, and a folder whose name cannot be written in the file.
pub fn submit(
    store: &Store,
    cluster: Cluster,
    shards: u64,
    cpus: u32,
    command: &str,
    image: &str,
) -> Result<String, Error> {
    let chunks = store.plan().chunks();
    if shards == 0 || shards > chunks {
        return Err(Error::new(format!("--shards is 1 to {chunks}, as this sweep has {chunks} chunks")));
    }
    let folder = std::path::absolute(store.folder()).map_err(|error| Error::file(store.folder(), &error))?;
    let folder = folder.to_str().filter(|text| !text.contains(['\'', '"', '\n', '\\']));
    let folder = folder
        .ok_or_else(|| Error::file(store.folder(), &"this name has quotes in it; rename the folder"))?;
    let name = name_of(store.folder());
    let last = shards - 1;
    Ok(match cluster {
        Cluster::Slurm => format!(
            "#!/bin/sh\n\
             # A sweep in {shards} shares. Start it with sbatch; start it again to go on where it stopped.\n\
             #SBATCH --job-name={name}\n\
             #SBATCH --array=0-{last}\n\
             #SBATCH --cpus-per-task={cpus}\n\
             #SBATCH --requeue\n\
             #SBATCH --output={folder}/slurm-%A-%a.log\n\
             # Slurm signals a share ten seconds before it ends it, so that finished points are kept.\n\
             #SBATCH --signal=TERM@10\n\
             exec '{command}' sweep run '{folder}' --shard {shards} --threads {cpus} --no-cache\n"
        ),
        Cluster::Kubernetes => format!(
            "# A sweep in {shards} shares. Start it with kubectl apply -f; apply it again to go on where it stopped.\n\
             # The claim {name} must name a volume that all nodes can write; the sweep's folder is its root.\n\
             apiVersion: batch/v1\n\
             kind: Job\n\
             metadata:\n  name: {name}\n\
             spec:\n  completionMode: Indexed\n  completions: {shards}\n  parallelism: {shards}\n  backoffLimitPerIndex: 3\n  \
             template:\n    spec:\n      restartPolicy: Never\n      terminationGracePeriodSeconds: 10\n      \
             containers:\n        - name: sweep\n          image: {image}\n          \
             command: [\"{command}\", \"sweep\", \"run\", \"/sweep\", \"--shard\", \"{shards}\", \"--threads\", \"{cpus}\", \"--no-cache\"]\n          \
             resources:\n            requests:\n              cpu: \"{cpus}\"\n          \
             volumeMounts:\n            - name: sweep\n              mountPath: /sweep\n      \
             volumes:\n        - name: sweep\n          persistentVolumeClaim:\n            claimName: {name}\n"
        ),
    })
}

/// A name that both engines accept.
fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
    format!("schedlab-{}", name.trim_matches('-'))
}
