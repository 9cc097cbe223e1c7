// Loads the page again when a file of its folder changes. Only `bench serve --page` serves this script.

const versions = new EventSource('/page/.reload/versions');
/** Version of the folder that the page was loaded from. */
let loaded;
versions.addEventListener('message', ({ data }) => {
  if (loaded !== undefined && loaded !== data) location.reload();
  loaded ??= data;
});
