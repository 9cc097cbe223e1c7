/** Questions with computed answers in MMLU-Pro's columns, and models that answer them with a given accuracy. */

import fs from 'node:fs'
import path from 'node:path'
import { randomNumbers, writeLines } from './dataset.js'

const LETTERS = 'ABCDEFGHIJ'

/**
 * Templates by group: question, answer, unit, and the steps of a worked answer, for two numbers.
 *
 * @type {[string, (a: number, b: number) => {question: string, value: number, unit?: string, steps: string}][]}
 */
const TEMPLATES = [
  ['physics', (a, b) => ({ question: `A cart starts from rest and accelerates at ${a} m/s² for ${b} s. How far does it travel?`, value: a * b * b / 2, unit: ' m', steps: `The distance is $s = \\frac{1}{2} a t^2 = \\frac{1}{2} \\cdot ${a} \\cdot ${b}^2 = ${a * b * b / 2}$ m.` })],
  ['math', (a, b) => ({ question: `What is the derivative of $f(x) = ${a}x^2 + ${b}x$ at $x = 3$?`, value: 6 * a + b, steps: `$$f'(x) = ${2 * a}x + ${b}, \\qquad f'(3) = ${6 * a} + ${b} = ${6 * a + b}.$$` })],
  ['chemistry', (a, b) => ({ question: `How many grams of water (18 g/mol) form when ${a * b} mol of hydrogen burn completely?`, value: 18 * a * b, unit: ' g', steps: `$2\\,H_2 + O_2 \\to 2\\,H_2O$, so ${a * b} mol of hydrogen give ${a * b} mol of water, which weigh ${18 * a * b} g.` })],
  ['computer science', (a, b) => ({ question: `What does \`sum(range(${a}, ${a + b}))\` return in Python?`, value: Array.from({ length: b }, (_, i) => a + i).reduce((s, n) => s + n, 0), steps: `The range excludes its end:\n\n\`\`\`python\nsum(range(${a}, ${a + b}))  # ${a} + … + ${a + b - 1}\n\`\`\`` })],
  ['economics', (a, b) => ({ question: `Demand is Q = ${a * 20} − ${b}P and supply is Q = ${b}P. What quantity is traded in equilibrium?`, value: a * 10, steps: `In equilibrium $${a * 20} - ${b}P = ${b}P$, so $Q = ${a * 10}$.` })],
  ['engineering', (a, b) => ({ question: `A resistor of ${a} Ω carries ${b} A. How much power does it dissipate?`, value: a * b * b, unit: ' W', steps: `$P = I^2 R = ${b}^2 \\cdot ${a} = ${a * b * b}$ W.` })],
  ['biology', (a, b) => ({ question: `A culture of ${a * 100} bacteria doubles every 20 minutes. How many are there after ${20 * (b % 6 + 1)} minutes?`, value: a * 100 * 2 ** (b % 6 + 1), steps: `After ${b % 6 + 1} doublings there are $${a * 100} \\cdot 2^{${b % 6 + 1}} = ${a * 100 * 2 ** (b % 6 + 1)}$ bacteria.` })],
  ['business', (a, b) => ({ question: `Fixed costs are ${a * b * 100} a month, and each unit earns a margin of ${b}. How many units must be sold to break even?`, value: a * 100, steps: `The break-even point is fixed costs over margin: ${a * b * 100} / ${b} = ${a * 100} units.` })],
  ['health', (a, b) => ({ question: `A patient of ${a * 10} kg receives ${b} mg per kg and day in two equal doses. How large is one dose?`, value: a * b * 5, unit: ' mg', steps: `The daily amount is ${a * 10} · ${b} = ${a * b * 10} mg, and half of it is ${a * b * 5} mg.` })],
]

/**
 * Makes rows.
 *
 * @param {number} count
 * @param {number} [seed]
 */
export function questions(count, seed = 11) {
  const random = randomNumbers(seed)
  const asked = new Set()
  return Array.from({ length: count }, (_, i) => {
    const [category, make] = TEMPLATES[i % TEMPLATES.length]
    let made
    do made = make(2 + Math.floor(random() * (8 + i / 20)), 2 + Math.floor(random() * 8))
    while (asked.has(made.question))
    const { question, value, unit = '', steps } = made
    asked.add(question)
    const index = Math.floor(random() * 10)
    const step = Math.max(1, Math.round(value / 20))
    const options = Array.from({ length: 10 }, (_, k) => `${value + (k - index) * step}${unit}`)
    return { question_id: 1001 + i, question, options, answer: LETTERS[index], answer_index: index, cot_content: '', category, src: 'own', steps }
  })
}

/**
 * Writes a dataset with these rows, and with worked examples of each group.
 *
 * @param {string} folder
 * @param {ReturnType<typeof questions>} rows
 */
export function writeDataset(folder, rows) {
  fs.mkdirSync(folder)
  writeLines(path.join(folder, 'test.jsonl'), rows.map(({ steps: _, ...row }) => row))
  writeLines(path.join(folder, 'validation.jsonl'), questions(4 * TEMPLATES.length, 12).map(({ steps, ...row }) =>
    ({ ...row, cot_content: `A: Let's think step by step. ${steps} The answer is (${row.answer}).` })))
  return folder
}

/**
 * Makes models that know the answers to these rows with a probability of their own.
 *
 * @param {ReturnType<typeof questions>} rows
 * @param {Record<string, {accuracy: number, weak?: string, failures?: number}>} models `weak` is a group in which the model is
 *   worse, `failures` the share of requests that the server refuses
 * @returns {(question: import('./model-server.js').Question) => import('./model-server.js').Reply}
 */
export function knowing(rows, models) {
  return ({ model, text }) => {
    const last = text.slice(text.lastIndexOf('Question:'))
    const row = rows.find(({ question }) => last.includes(question))
    if (!row) return { text: 'The answer is (A).', delay: 5 }
    const { accuracy, weak, failures = 0 } = models[model]
    const random = randomNumbers(row.question_id * 31 + Object.keys(models).indexOf(model))
    const delay = 4 + random() * 30
    if (random() < failures) return { status: 500, delay }
    const knows = random() < (row.category === weak ? accuracy / 2 : accuracy)
    const form = random()
    if (!knows && form < 0.1) return { text: 'Let me think about the units first. The question leaves open', finish: 'length', delay }
    if (!knows && form < 0.2) return { text: 'None of the options seems right to me.', delay }
    if (!knows && form < 0.25) return { text: '', delay }
    const letter = knows ? row.answer : LETTERS[(row.answer_index + 1 + Math.floor(random() * 9)) % 10]
    return { text: `${row.steps}\n\nTherefore **the answer is (${letter})**.`, reasoning: 'First I name the quantities, then I insert the numbers and compare the result with the options.', delay }
  }
}
