/** Who can see a run: words and marks. */

import { h } from './dom.js'

/** @typedef {{visibility?: string | null}} Visible a run or a schedule; servers of earlier versions say nothing, and show everything to everybody */

/** Visibilities in the order of the form, each with its name and a sentence. @type {Record<string, {label: string, meaning: string}>} */
export const VISIBILITIES = {
  public: { label: 'Public', meaning: 'Everybody can find and read it.' },
  unlisted: { label: 'Unlisted', meaning: 'Everybody who has its address can read it. It is in no list of others and no leaderboard.' },
  private: { label: 'Private', meaning: 'Only its owner and the operator of this server can read it.' },
}

/**
 * Makes the mark of a run that isn't public.
 *
 * @param {Visible} run
 */
export function visibilityMark({ visibility }) {
  const known = VISIBILITIES[visibility ?? 'public']
  if (!known || visibility === 'public' || !visibility) return null
  return h('span', { class: 'tag visibility', title: known.meaning }, known.label)
}
