// Names for the shapes of the API. The shapes are generated from docs/reference/openapi.json
// (`npm run types`), which is generated from the gateway's own types. None is written by hand.
import type { components } from './api';

type Shapes = components['schemas'];
export type Answers = Shapes['Answers'];
export type Audit = Shapes['Audit'];
export type Change = Shapes['Change'];
export type ClassColumns = Shapes['ClassColumns'];
export type ClassLearned = Shapes['ClassLearned'];
export type ClassPolicy = Shapes['ClassPolicy'];
export type ClassStatus = Shapes['ClassStatus'];
export type Columns = Shapes['Columns'];
export type Decision = Shapes['Decision'];
export type Effect = Shapes['Effect'];
export type Elephant = Shapes['Elephant'];
export type Elephants = Shapes['Elephants'];
export type Evidence = Shapes['Evidence'];
export type Explained = Shapes['Explained'];
export type Exported = Shapes['Exported'];
export type Found = Shapes['Found'];
export type Gauge = Shapes['Gauge'];
export type Grants = Shapes['Grants'];
export type Kind = Shapes['Kind'];
export type Kinds = Shapes['Kinds'];
export type LabResults = Shapes['LabResults'];
export type Lot = Shapes['Lot'];
export type Mode = Shapes['Mode'];
export type Note = Shapes['Note'];
export type Override = Shapes['Override'];
export type Policy = Shapes['Policy'];
export type PolicyInForce = Shapes['PolicyInForce'];
export type Previewed = Shapes['Previewed'];
export type Problem = Shapes['Problem'];
export type Request = Shapes['Request'];
export type Requests = Shapes['Requests'];
export type Revisions = Shapes['Revisions'];
export type Rule = Shapes['Rule'];
export type Sessions = Shapes['Sessions'];
export type SetBypass = Shapes['SetBypass'];
export type SetClass = Shapes['SetClass'];
export type Status = Shapes['Status'];
export type Trial = Shapes['Trial'];
export type Undo = Shapes['Undo'];
export type Use = Shapes['Use'];
export type WindowSums = Shapes['WindowSums'];

export type OutcomeName = keyof Shapes['Outcomes'];
export type ShadowName = keyof Shapes['Shadow'];
