"""Expressions that people use with dcgm-exporter, each with where it comes from. Variables are filled in.

Two scrape jobs see the same page. In `KEPT` the exporter's pod labels win (`honor_labels: true`); in `MOVED` those of
the target do, as with dcgm-exporter's own ServiceMonitor, and the exporter's are called `exported_pod` and so on.
"""

from dataclasses import dataclass

KEPT, MOVED = "kept", "moved"

# grafana/dcgm-exporter-dashboard.json of NVIDIA/dcgm-exporter at d5e5f51 (2026-05-12).
DASHBOARD = (
    'DCGM_FI_DEV_GPU_TEMP{instance=~".+", gpu=~".+"}',
    'avg(DCGM_FI_DEV_GPU_TEMP{instance=~".+", gpu=~".+"})',
    'DCGM_FI_DEV_POWER_USAGE{instance=~".+", gpu=~".+"}',
    'sum(DCGM_FI_DEV_POWER_USAGE{instance=~".+", gpu=~".+"})',
    'DCGM_FI_DEV_SM_CLOCK{instance=~".+", gpu=~".+"} * 1000000',
    'DCGM_FI_DEV_GPU_UTIL{instance=~".+", gpu=~".+"}',
    'DCGM_FI_DEV_FB_USED{instance=~".+", gpu=~".+"}',
    'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{instance=~".+", gpu=~".+"}',
)
# KEDA: openshift/openshift-docs (custom metrics autoscaler), giantswarm/docs, and the form that most guides have.
KEDA_KEPT = (
    'SUM(DCGM_FI_DEV_GPU_UTIL{instance=~".+", gpu=~".+"})',
    'avg(DCGM_FI_DEV_GPU_UTIL{namespace!="",pod!=""}) by (pod)',
    'avg(DCGM_FI_DEV_MEM_COPY_UTIL{namespace!="",pod!=""}) by (pod)',
    'avg(DCGM_FI_DEV_GPU_UTIL{pod=~"chat-.*"})',
    'avg(DCGM_FI_DEV_FB_USED{pod=~"chat-.*"} / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE))',
)
KEDA_MOVED = ('avg(DCGM_FI_DEV_GPU_UTIL{exported_pod=~"chat-.*"})',)
# rh-ecosystem-edge/console-plugin-nvidia-gpu at b709536 (2026-05-11): the GPU pages of OpenShift's console. Where they
# end in `or vector(0)`, that is left out here, since it would always be an answer.
CONSOLE = (
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    'sum(DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID=~".+"})',
    'sum(DCGM_FI_DEV_MEM_COPY_UTIL{UUID=~".+"})',
    'sum(DCGM_FI_DEV_ENC_UTIL{UUID=~".+"})',
    'sum(DCGM_FI_DEV_DEC_UTIL{UUID=~".+"})',
    'avg(DCGM_FI_DEV_POWER_USAGE{UUID=~".+"})',
    'DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX{UUID=~".+"}',
    'avg(DCGM_FI_DEV_GPU_TEMP{UUID=~".+"})',
    'avg(DCGM_FI_DEV_SM_CLOCK{UUID=~".+"})',
    'DCGM_FI_DEV_MAX_SM_CLOCK{UUID=~".+"}',
    'DCGM_FI_DEV_MEM_CLOCK{UUID=~".+"}',
    'DCGM_FI_DEV_MAX_MEM_CLOCK{UUID=~".+"}',
    'sum (DCGM_FI_PROF_GR_ENGINE_ACTIVE{exported_pod=~".+"}) by (exported_namespace, exported_pod, UUID)',
    'count(count by (UUID,GPU_I_ID) (DCGM_FI_PROF_GR_ENGINE_ACTIVE{exported_pod=~".+"})) > 0',
    "count(count by (UUID,GPU_I_ID) (DCGM_FI_PROF_GR_ENGINE_ACTIVE)) > 0",
    "sum(max by (UUID) (DCGM_FI_DEV_POWER_USAGE))",
    "count(count by (UUID,GPU_I_ID) (DCGM_FI_DEV_MEM_COPY_UTIL))",
)
# opencost/opencost: what a container uses of its GPU, and which GPU that is.
OPENCOST = (
    'avg(avg_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{container!=""}[2m])) by (container, pod, namespace)',
    'max(max_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{container!=""}[2m])) by (container, pod, namespace)',
    (
        'avg(avg_over_time(DCGM_FI_DEV_DEC_UTIL{container!=""}[2m]))'
        " by (container, pod, namespace, device, modelName, UUID)"
    ),
)
# Rules of prometheus-adapter, as guides to scaling by GPU have them.
ADAPTER = (
    'DCGM_FI_DEV_GPU_UTIL{exported_namespace!="",exported_container!="",exported_pod!=""}',
    (
        "avg by (exported_namespace, exported_container) (round(avg_over_time("
        'DCGM_FI_DEV_GPU_UTIL{exported_pod!=""}[1m])))'
    ),
    'sum(DCGM_FI_DEV_FB_USED{exported_namespace!="",exported_pod!=""}) by (exported_namespace, exported_pod)',
)
ADAPTER_KEPT = ('avg(DCGM_FI_DEV_GPU_UTIL{namespace!="",pod!=""}) by (namespace, pod)',)


@dataclass(frozen=True)
class Expression:
    origin: str
    job: str
    text: str


def _all(origin: str, job: str, texts: tuple[str, ...]) -> tuple[Expression, ...]:
    return tuple(Expression(origin, job, text) for text in texts)


EXPRESSIONS = (
    *_all("dashboard", KEPT, DASHBOARD),
    *_all("KEDA", KEPT, KEDA_KEPT),
    *_all("KEDA", MOVED, KEDA_MOVED),
    *_all("console", MOVED, CONSOLE),
    *_all("OpenCost", KEPT, OPENCOST),
    *_all("prometheus-adapter", MOVED, ADAPTER),
    *_all("prometheus-adapter", KEPT, ADAPTER_KEPT),
)

# Expressions that get no answer, and why.
NOT_OFFERED = {
    # The console's count of a project's pods.
    'count((kube_pod_status_phase > 0) * on(pod) group_left(gpu,device,instance,modelName) label_replace(DCGM_FI_PROF_GR_ENGINE_ACTIVE{exported_pod=~".+", exported_namespace=".+"}, "pod", "$1", "exported_pod", "(.*)"))': (  # noqa: E501
        "kube_pod_status_phase comes from kube-state-metrics"
    ),
    "gpu_operator_reconciliation_status": "the GPU operator's own, about itself",
    # MicrosoftDocs/azure-aks-docs.
    'avg(DCGM_FI_DEV_GPU_UTIL{deployment="my-gpu-workload"})': (
        "no version of dcgm-exporter has this label; podgpu_pod_info has the workload"
    ),
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_L0": "the demo does not tell its links apart",
}
