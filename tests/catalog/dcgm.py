"""The counters of dcgm-exporter up to 4.8.2, of the 1.x script, and what 4.9 renamed: name, type and HELP."""

# Enabled in default-counters.csv.
DEFAULT_COUNTERS: dict[str, tuple[str, str]] = {
    "DCGM_FI_DEV_SM_CLOCK": ("gauge", "SM clock frequency (in MHz)."),
    "DCGM_FI_DEV_MEM_CLOCK": ("gauge", "Memory clock frequency (in MHz)."),
    "DCGM_FI_DEV_MEMORY_TEMP": ("gauge", "Memory temperature (in C)."),
    "DCGM_FI_DEV_GPU_TEMP": ("gauge", "GPU temperature (in C)."),
    "DCGM_FI_DEV_POWER_USAGE": ("gauge", "Power draw (in W)."),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("counter", "Total energy consumption since boot (in mJ)."),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("counter", "Total number of PCIe retries."),
    "DCGM_FI_DEV_GPU_UTIL": ("gauge", "GPU utilization (in %)."),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("gauge", "Memory utilization (in %)."),
    "DCGM_FI_DEV_ENC_UTIL": ("gauge", "Encoder utilization (in %)."),
    "DCGM_FI_DEV_DEC_UTIL": ("gauge", "Decoder utilization (in %)."),
    "DCGM_FI_DEV_XID_ERRORS": ("gauge", "Value of the last XID error encountered."),
    "DCGM_FI_DEV_FB_FREE": ("gauge", "Framebuffer memory free (in MiB)."),
    "DCGM_FI_DEV_FB_USED": ("gauge", "Framebuffer memory used (in MiB)."),
    "DCGM_FI_DEV_FB_RESERVED": ("gauge", "Framebuffer memory reserved (in MiB)."),
    # It never was a counter. 4.8.3 made it a gauge.
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": (
        "counter",
        "Total number of NVLink bandwidth counters for all lanes.",
    ),
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS": ("gauge", "vGPU License status"),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": (
        "counter",
        "Number of remapped rows for uncorrectable errors",
    ),
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": ("counter", "Number of remapped rows for correctable errors"),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": ("gauge", "Whether remapping of rows has failed"),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("gauge", "Ratio of time the graphics engine is active."),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("gauge", "Ratio of cycles the tensor (HMMA) pipe is active."),
    "DCGM_FI_PROF_DRAM_ACTIVE": (
        "gauge",
        "Ratio of cycles the device memory interface is active sending or receiving data.",
    ),
    "DCGM_FI_PROF_PCIE_TX_BYTES": (
        "gauge",
        (
            "The rate of data transmitted over the PCIe bus - including both protocol headers"
            " and data payloads - in bytes per second."
        ),
    ),
    "DCGM_FI_PROF_PCIE_RX_BYTES": (
        "gauge",
        (
            "The rate of data received over the PCIe bus - including both protocol headers"
            " and data payloads - in bytes per second."
        ),
    ),
}

# There, but commented out. Two more lines give the rates of PCIe traffic a second HELP as counters.
OPTIONAL_COUNTERS: dict[str, tuple[str, str]] = {
    "DCGM_FI_DEV_POWER_VIOLATION": ("counter", "Throttling duration due to power constraints (in ns)."),
    "DCGM_FI_DEV_THERMAL_VIOLATION": ("counter", "Throttling duration due to thermal constraints (in ns)."),
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION": (
        "counter",
        "Throttling duration due to sync-boost constraints (in ns).",
    ),
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION": (
        "counter",
        "Throttling duration due to board limit constraints (in ns).",
    ),
    "DCGM_FI_DEV_LOW_UTIL_VIOLATION": ("counter", "Throttling duration due to low utilization (in ns)."),
    "DCGM_FI_DEV_RELIABILITY_VIOLATION": (
        "counter",
        "Throttling duration due to reliability constraints (in ns).",
    ),
    "DCGM_EXP_CLOCK_EVENTS_COUNT": ("counter", "reported clock events"),
    "DCGM_EXP_XID_ERRORS_COUNT": ("counter", "reported XIDs during last window"),
    "DCGM_EXP_GPU_HEALTH_STATUS": ("counter", "DCGM reported health status"),
    "DCGM_EXP_P2P_STATUS": ("counter", "P2P NvLink status"),
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": ("counter", "Total number of single-bit volatile ECC errors."),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": ("counter", "Total number of double-bit volatile ECC errors."),
    "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL": ("counter", "Total number of single-bit persistent ECC errors."),
    "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": ("counter", "Total number of double-bit persistent ECC errors."),
    "DCGM_FI_DEV_RETIRED_SBE": ("counter", "Total number of retired pages due to single-bit errors."),
    "DCGM_FI_DEV_RETIRED_DBE": ("counter", "Total number of retired pages due to double-bit errors."),
    "DCGM_FI_DEV_RETIRED_PENDING": ("counter", "Total number of pages pending retirement."),
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": (
        "counter",
        "Total number of NVLink flow-control CRC errors.",
    ),
    "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": ("counter", "Total number of NVLink data CRC errors."),
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": ("counter", "Total number of NVLink retries."),
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": ("counter", "Total number of NVLink recovery errors."),
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_L0": (
        "counter",
        "The number of bytes of active NVLink rx or tx data including both header and payload.",
    ),
    "DCGM_FI_PROF_SM_ACTIVE": ("gauge", "The ratio of cycles an SM has at least 1 warp assigned."),
    "DCGM_FI_PROF_SM_OCCUPANCY": ("gauge", "The ratio of number of warps resident on an SM."),
    "DCGM_FI_PROF_PIPE_FP64_ACTIVE": ("gauge", "Ratio of cycles the fp64 pipes are active."),
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE": ("gauge", "Ratio of cycles the fp32 pipes are active."),
    "DCGM_FI_PROF_PIPE_FP16_ACTIVE": ("gauge", "Ratio of cycles the fp16 pipes are active."),
}

# Columns of type `label`: facts about a card that a dialect prints as labels.
LABELS = {
    "DCGM_FI_DRIVER_VERSION",
    "DCGM_FI_NVML_VERSION",
    "DCGM_FI_DEV_BRAND",
    "DCGM_FI_DEV_SERIAL",
    "DCGM_FI_DEV_OEM_INFOROM_VER",
    "DCGM_FI_DEV_ECC_INFOROM_VER",
    "DCGM_FI_DEV_POWER_INFOROM_VER",
    "DCGM_FI_DEV_INFOROM_IMAGE_VER",
    "DCGM_FI_DEV_VBIOS_VERSION",
}

LEFT_OUT = {
    "DCGM_EXP_P2P_STATUS": "a fact about pairs of cards, not about one",
}

# No readings of a card: the dialect works them out.
DERIVED = {"DCGM_EXP_CLOCK_EVENTS_COUNT", "DCGM_EXP_XID_ERRORS_COUNT", "DCGM_EXP_GPU_HEALTH_STATUS"}

# dcgm_ names of 1.x, with the fields of its -p option, and app_clock_violation, which it dropped in 2019.
VERSION_1: dict[str, tuple[str, str]] = {
    "dcgm_sm_clock": ("gauge", "SM clock frequency (in MHz)."),
    "dcgm_memory_clock": ("gauge", "Memory clock frequency (in MHz)."),
    "dcgm_memory_temp": ("gauge", "Memory temperature (in C)."),
    "dcgm_gpu_temp": ("gauge", "GPU temperature (in C)."),
    "dcgm_power_usage": ("gauge", "Power draw (in W)."),
    "dcgm_total_energy_consumption": ("counter", "Total energy consumption since boot (in mJ)."),
    "dcgm_pcie_tx_throughput": (
        "counter",
        "Total number of bytes transmitted through PCIe TX (in KB) via NVML.",
    ),
    "dcgm_pcie_rx_throughput": (
        "counter",
        "Total number of bytes received through PCIe RX (in KB) via NVML.",
    ),
    "dcgm_pcie_replay_counter": ("counter", "Total number of PCIe retries."),
    "dcgm_gpu_utilization": ("gauge", "GPU utilization (in %)."),
    "dcgm_mem_copy_utilization": ("gauge", "Memory utilization (in %)."),
    "dcgm_enc_utilization": ("gauge", "Encoder utilization (in %)."),
    "dcgm_dec_utilization": ("gauge", "Decoder utilization (in %)."),
    "dcgm_xid_errors": ("gauge", "Value of the last XID error encountered."),
    "dcgm_power_violation": ("counter", "Throttling duration due to power constraints (in us)."),
    "dcgm_thermal_violation": ("counter", "Throttling duration due to thermal constraints (in us)."),
    "dcgm_sync_boost_violation": ("counter", "Throttling duration due to sync-boost constraints (in us)."),
    "dcgm_board_limit_violation": ("counter", "Throttling duration due to board limit constraints (in us)."),
    "dcgm_low_util_violation": ("counter", "Throttling duration due to low utilization (in us)."),
    "dcgm_reliability_violation": ("counter", "Throttling duration due to reliability constraints (in us)."),
    "dcgm_app_clock_violation": ("counter", "Total throttling duration (in us)."),
    "dcgm_fb_free": ("gauge", "Framebuffer memory free (in MiB)."),
    "dcgm_fb_used": ("gauge", "Framebuffer memory used (in MiB)."),
    "dcgm_ecc_sbe_volatile_total": ("counter", "Total number of single-bit volatile ECC errors."),
    "dcgm_ecc_dbe_volatile_total": ("counter", "Total number of double-bit volatile ECC errors."),
    "dcgm_ecc_sbe_aggregate_total": ("counter", "Total number of single-bit persistent ECC errors."),
    "dcgm_ecc_dbe_aggregate_total": ("counter", "Total number of double-bit persistent ECC errors."),
    "dcgm_retired_pages_sbe": ("counter", "Total number of retired pages due to single-bit errors."),
    "dcgm_retired_pages_dbe": ("counter", "Total number of retired pages due to double-bit errors."),
    "dcgm_retired_pages_pending": ("counter", "Total number of pages pending retirement."),
    "dcgm_nvlink_flit_crc_error_count_total": ("counter", "Total number of NVLink flow-control CRC errors."),
    "dcgm_nvlink_data_crc_error_count_total": ("counter", "Total number of NVLink data CRC errors."),
    "dcgm_nvlink_replay_error_count_total": ("counter", "Total number of NVLink retries."),
    "dcgm_nvlink_recovery_error_count_total": ("counter", "Total number of NVLink recovery errors."),
    "dcgm_nvlink_bandwidth_total": ("counter", "Total number of NVLink bandwidth counters for all lanes"),
    "dcgm_fi_prof_gr_engine_active": ("gauge", "Ratio of time the graphics engine is active (in %)."),
    "dcgm_fi_prof_sm_active": ("gauge", "The ratio of cycles an SM has at least 1 warp assigned (in %)."),
    "dcgm_fi_prof_sm_occupancy": ("gauge", "The ratio of number of warps resident on an SM (in %)."),
    "dcgm_fi_prof_pipe_tensor_active": ("gauge", "Ratio of cycles the tensor (HMMA) pipe is active (in %)."),
    "dcgm_fi_prof_dram_active": (
        "gauge",
        "Ratio of cycles the device memory interface is active sending or receiving data (in %).",
    ),
}

RENAMED_IN_4_9 = {
    "DCGM_FI_DEV_SM_CLOCK": "DCGM_FI_DEV_SM_CLOCK_HERTZ",
    "DCGM_FI_DEV_MEM_CLOCK": "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ",
    "DCGM_FI_DEV_MEMORY_TEMP": "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS",
    "DCGM_FI_DEV_GPU_TEMP": "DCGM_FI_DEV_GPU_TEMP_CELSIUS",
    "DCGM_FI_DEV_POWER_USAGE": "DCGM_FI_DEV_BOARD_POWER_WATTS",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": "DCGM_FI_DEV_PCIE_REPLAY_TOTAL",
    "DCGM_FI_DEV_GPU_UTIL": "DCGM_FI_DEV_GPU_UTIL_RATIO",
    "DCGM_FI_DEV_MEM_COPY_UTIL": "DCGM_FI_DEV_MEMORY_UTIL_RATIO",
    "DCGM_FI_DEV_ENC_UTIL": "DCGM_FI_DEV_ENC_UTIL_RATIO",
    "DCGM_FI_DEV_DEC_UTIL": "DCGM_FI_DEV_DEC_UTIL_RATIO",
    "DCGM_FI_DEV_XID_ERRORS": "DCGM_FI_DEV_XID_ERROR",
    "DCGM_FI_DEV_FB_TOTAL": "DCGM_FI_DEV_FB_CAPACITY_BYTES",
    "DCGM_FI_DEV_FB_FREE": "DCGM_FI_DEV_FB_FREE_BYTES",
    "DCGM_FI_DEV_FB_USED": "DCGM_FI_DEV_FB_USED_BYTES",
    "DCGM_FI_DEV_FB_RESERVED": "DCGM_FI_DEV_FB_RESERVED_BYTES",
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": "DCGM_FI_DEV_ROW_REMAP_FAILED",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "DCGM_FI_PROF_TENSOR_UTIL_RATIO",
    "DCGM_FI_PROF_DRAM_ACTIVE": "DCGM_FI_PROF_DRAM_UTIL_RATIO",
    "DCGM_FI_PROF_SM_ACTIVE": "DCGM_FI_PROF_SM_UTIL_RATIO",
    "DCGM_FI_PROF_SM_OCCUPANCY": "DCGM_FI_PROF_SM_OCCUPANCY_RATIO",
    "DCGM_FI_PROF_PIPE_FP64_ACTIVE": "DCGM_FI_PROF_FP64_UTIL_RATIO",
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE": "DCGM_FI_PROF_FP32_UTIL_RATIO",
    "DCGM_FI_PROF_PIPE_FP16_ACTIVE": "DCGM_FI_PROF_FP16_UTIL_RATIO",
}
