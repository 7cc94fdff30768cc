// Reads objects of prometheus-operator and KEDA as JSON, and prints what their schemas say against each.
import { readFileSync } from "node:fs";

const folders = {
  "monitoring.coreos.com/v1": "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1",
  "keda.sh/v1alpha1": "@kubernetes-models/keda/keda.sh/v1alpha1",
};
for (const { apiVersion, kind, ...rest } of JSON.parse(readFileSync(0, "utf8"))) {
  const module = await import(`${folders[apiVersion]}/${kind}`);
  try {
    new module[kind](rest).validate();
  } catch (error) {
    console.log(`${kind}/${rest.metadata.name}: ${error.message}`);
  }
}
