/** Commands of TeX that stand for one character, by the kind of MathML element that shows them. */

/** Letters and other identifiers. @type {Record<string, string>} */
export const IDENTIFIERS = {
  alpha: 'α', beta: 'β', gamma: 'γ', delta: 'δ', epsilon: 'ϵ', varepsilon: 'ε', zeta: 'ζ', eta: 'η', theta: 'θ',
  vartheta: 'ϑ', iota: 'ι', kappa: 'κ', lambda: 'λ', mu: 'μ', nu: 'ν', xi: 'ξ', pi: 'π', varpi: 'ϖ', rho: 'ρ',
  varrho: 'ϱ', sigma: 'σ', varsigma: 'ς', tau: 'τ', upsilon: 'υ', phi: 'ϕ', varphi: 'φ', chi: 'χ', psi: 'ψ',
  omega: 'ω', Gamma: 'Γ', Delta: 'Δ', Theta: 'Θ', Lambda: 'Λ', Xi: 'Ξ', Pi: 'Π', Sigma: 'Σ', Upsilon: 'Υ', Phi: 'Φ',
  Psi: 'Ψ', Omega: 'Ω', ell: 'ℓ', hbar: 'ℏ', imath: 'ı', jmath: 'ȷ', Re: 'ℜ', Im: 'ℑ', aleph: 'ℵ', infty: '∞',
  emptyset: '∅', varnothing: '∅', partial: '∂', nabla: '∇', angle: '∠', triangle: '△', square: '□', Box: '□',
  blacksquare: '■', degree: '°', top: '⊤', bot: '⊥', dots: '…', ldots: '…', cdots: '⋯', vdots: '⋮', ddots: '⋱',
}

/** Operators and relations. @type {Record<string, string>} */
export const OPERATORS = {
  pm: '±', mp: '∓', times: '×', div: '÷', cdot: '⋅', ast: '∗', star: '⋆', circ: '∘', bullet: '∙', oplus: '⊕',
  ominus: '⊖', otimes: '⊗', odot: '⊙', cap: '∩', cup: '∪', wedge: '∧', land: '∧', vee: '∨', lor: '∨', neg: '¬',
  lnot: '¬', setminus: '∖', leq: '≤', le: '≤', leqslant: '≤', geq: '≥', ge: '≥', geqslant: '≥', neq: '≠', ne: '≠',
  equiv: '≡', approx: '≈', sim: '∼', simeq: '≃', cong: '≅', propto: '∝', ll: '≪', gg: '≫', prec: '≺', succ: '≻',
  in: '∈', notin: '∉', ni: '∋', subset: '⊂', subseteq: '⊆', supset: '⊃', supseteq: '⊇', mid: '∣', nmid: '∤',
  parallel: '∥', perp: '⊥', forall: '∀', exists: '∃', nexists: '∄', to: '→', rightarrow: '→', leftarrow: '←',
  gets: '←', leftrightarrow: '↔', Rightarrow: '⇒', implies: '⇒', Leftarrow: '⇐', Leftrightarrow: '⇔', iff: '⇔',
  mapsto: '↦', longrightarrow: '⟶', Longrightarrow: '⟹', uparrow: '↑', downarrow: '↓', rightleftharpoons: '⇌',
  therefore: '∴', because: '∵', models: '⊨', vdash: '⊢', colon: ':', prime: '′', lbrace: '{', rbrace: '}',
  langle: '⟨', rangle: '⟩', lfloor: '⌊', rfloor: '⌋', lceil: '⌈', rceil: '⌉', lvert: '|', rvert: '|', vert: '|',
  lVert: '‖', rVert: '‖', Vert: '‖', backslash: '\\', '{': '{', '}': '}', '|': '‖', '%': '%', $: '$', '#': '#',
  '&': '&', _: '_',
}

/** Operators whose limits stand above and below. @type {Record<string, string>} */
export const LARGE = {
  sum: '∑', prod: '∏', coprod: '∐', bigcup: '⋃', bigcap: '⋂', bigoplus: '⨁', bigotimes: '⨂', bigvee: '⋁',
  bigwedge: '⋀',
}

/** Integrals, whose limits stand beside them. @type {Record<string, string>} */
export const INTEGRALS = { int: '∫', iint: '∬', iiint: '∭', oint: '∮' }

/** Functions, which are upright. */
export const FUNCTIONS = new Set(
  ('arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf limsup ln log max min ' +
    'Pr sec sin sinh sup tan tanh lcm').split(' '),
)

/** Functions whose limits stand below. */
export const LIMITS = new Set(['lim', 'liminf', 'limsup', 'max', 'min', 'sup', 'inf', 'gcd', 'det', 'Pr'])

/** Spaces, in em. @type {Record<string, number>} */
export const SPACES = {
  ',': 0.17, ':': 0.22, '>': 0.22, ';': 0.28, '!': 0, ' ': 0.25, quad: 1, qquad: 2, thinspace: 0.17, enspace: 0.5,
}

/** Accents above their argument. @type {Record<string, string>} */
export const ACCENTS = {
  hat: '^', widehat: '^', bar: '¯', overline: '¯', vec: '→', overrightarrow: '→', dot: '˙', ddot: '¨', tilde: '~',
  widetilde: '~', overbrace: '⏞',
}

/** Styles of letters, as values of `mathvariant` or a class that the style sheet knows. @type {Record<string, string>} */
export const STYLES = {
  mathbf: 'bold', boldsymbol: 'bold', bm: 'bold', mathbb: 'double', mathcal: 'script', mathscr: 'script',
  mathfrak: 'fraktur', mathsf: 'upright', mathtt: 'upright', mathrm: 'upright', mathit: 'italic',
  operatorname: 'upright', mathop: 'upright',
}

/** Commands that only affect sizes or spacing and are left out. */
export const IGNORED = new Set(
  ('displaystyle textstyle scriptstyle limits nolimits big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr ' +
    'middle nonumber notag hline allowbreak noindent').split(' '),
)

/** Commands whose argument is text. */
export const TEXTS = new Set(['text', 'textbf', 'textit', 'textrm', 'texttt', 'textsf', 'mbox', 'hbox'])

/** Fences of environments with rows and columns. @type {Record<string, [string, string]>} */
export const ENVIRONMENTS = {
  matrix: ['', ''], smallmatrix: ['', ''], pmatrix: ['(', ')'], bmatrix: ['[', ']'], Bmatrix: ['{', '}'],
  vmatrix: ['|', '|'], Vmatrix: ['‖', '‖'], cases: ['{', ''], array: ['', ''], aligned: ['', ''], align: ['', ''],
  'align*': ['', ''], gathered: ['', ''], gather: ['', ''], 'gather*': ['', ''], equation: ['', ''],
  'equation*': ['', ''], split: ['', ''],
}

/** Double-struck capitals that have a character of their own outside the block. @type {Record<string, string>} */
export const DOUBLE = { C: 'ℂ', H: 'ℍ', N: 'ℕ', P: 'ℙ', Q: 'ℚ', R: 'ℝ', Z: 'ℤ' }
