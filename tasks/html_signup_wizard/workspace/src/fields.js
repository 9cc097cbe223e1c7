/** Countries whose companies have to give a VAT number, with its form after spaces, dots and hyphens were removed. */
export const VAT_NUMBERS = {
  at: /^ATU[0-9]{8}$/,
  de: /^DE[0-9]{9}$/,
  fr: /^FR[0-9A-Z]{2}[0-9]{9}$/,
};

export const MIN_AGE = 18;
export const MAX_TOPICS = 3;

export const steps = [
  { id: "account", title: "Your account", fields: ["email", "password", "password_repeat"] },
  { id: "person", title: "About you", fields: ["name", "birth_date", "country", "phone"] },
  { id: "plan", title: "Your plan", fields: ["plan", "company", "vat_id", "children", "topics", "terms"] },
];

/**
 * All fields by name. `kind` is `input`, `select`, `radios`, `checkboxes`, `checkbox` or `rows`. `attributes` go on the control
 * as they are. `messages` are texts of errors by their reason. `rows` are up to `max` rows with the same `parts`, which are
 * fields of the kind `input`.
 */
export const fields = {
  email: {
    kind: "input",
    label: "Email address",
    hint: "We send a confirmation to this address.",
    required: true,
    attributes: { type: "email", autocomplete: "email", maxlength: 254 },
    messages: { missing: "Enter your email address", invalid: "Enter an email address like name@example.org" },
  },
  password: {
    kind: "input",
    label: "Password",
    hint: "At least 12 characters.",
    required: true,
    attributes: { type: "password", autocomplete: "new-password", minlength: 12, maxlength: 128 },
    messages: {
      missing: "Choose a password",
      too_short: "The password needs at least 12 characters",
      too_long: "The password can have at most 128 characters",
      contains_email: "The password must not contain your email name",
    },
  },
  password_repeat: {
    kind: "input",
    label: "Repeat the password",
    required: true,
    attributes: { type: "password", autocomplete: "new-password" },
    messages: { missing: "Repeat the password", different: "The passwords are not the same" },
  },
  name: {
    kind: "input",
    label: "Full name",
    required: true,
    attributes: { type: "text", autocomplete: "name", maxlength: 80 },
    messages: { missing: "Enter your name", too_long: "The name can have at most 80 characters" },
  },
  birth_date: {
    kind: "input",
    label: "Date of birth",
    hint: "You have to be 18 to borrow power tools.",
    required: true,
    attributes: { type: "date", autocomplete: "bday", min: "1900-01-01" },
    messages: { missing: "Enter your date of birth", invalid: "Enter a real date", too_young: "You have to be at least 18" },
  },
  country: {
    kind: "select",
    label: "Country",
    placeholder: "Choose a country",
    required: true,
    attributes: { autocomplete: "country" },
    options: [
      ["at", "Austria"],
      ["ch", "Switzerland"],
      ["de", "Germany"],
      ["fr", "France"],
      ["gb", "United Kingdom"],
    ],
    messages: { missing: "Choose a country" },
  },
  phone: {
    kind: "input",
    label: "Phone number",
    hint: "With the country code, like +49 30 1234567.",
    attributes: { type: "tel", autocomplete: "tel", maxlength: 40 },
    messages: { invalid: "Enter a phone number that begins with +" },
  },
  plan: {
    kind: "radios",
    label: "Plan",
    required: true,
    options: [
      ["basic", "Basic: 3 tools a month"],
      ["maker", "Maker: 10 tools a month"],
      ["family", "Family: hand tools for children, too"],
      ["business", "Business: for companies"],
    ],
    messages: { missing: "Choose a plan" },
  },
  company: {
    kind: "input",
    label: "Company",
    required: true,
    attributes: { type: "text", autocomplete: "organization", maxlength: 120 },
    messages: { missing: "Enter the name of your company", too_long: "The name can have at most 120 characters" },
  },
  vat_id: {
    kind: "input",
    label: "VAT number",
    hint: "As it is on your invoices.",
    required: true,
    attributes: { type: "text", autocomplete: "off", spellcheck: "false" },
    messages: { missing: "Enter the VAT number", invalid: "This is not a VAT number of your country" },
  },
  children: {
    kind: "rows",
    label: "Children",
    hint: "They get cards of their own.",
    required: true,
    max: 4,
    row: "Child",
    add: "Add a child",
    parts: {
      name: {
        kind: "input",
        label: "Name",
        required: true,
        attributes: { type: "text", autocomplete: "off", maxlength: 80 },
        messages: {
          missing: "Enter the child's name",
          too_long: "The name can have at most 80 characters",
          duplicate: "This child is listed already",
        },
      },
      birth_date: {
        kind: "input",
        label: "Date of birth",
        required: true,
        attributes: { type: "date", autocomplete: "off" },
        messages: {
          missing: "Enter the child's date of birth",
          invalid: "Enter a real date",
          future: "The date is in the future",
          too_old: "Children are under 18",
        },
      },
    },
    messages: { missing: "Add at least one child", too_many: "A family has at most 4 cards for children" },
  },
  topics: {
    kind: "checkboxes",
    label: "Newsletters",
    hint: "Up to 3.",
    options: [
      ["wood", "Woodwork"],
      ["metal", "Metalwork"],
      ["garden", "Garden & yard"],
      ["bikes", "Bikes"],
    ],
    messages: { too_many: "Choose at most 3 newsletters", invalid: "Choose newsletters from the list" },
  },
  terms: {
    kind: "checkbox",
    label: "I accept the terms of use",
    required: true,
    messages: { missing: "Accept the terms of use to continue" },
  },
};
