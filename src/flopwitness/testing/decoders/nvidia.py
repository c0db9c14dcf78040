"""The readers of nvidia-smi's logs, with logs of our own making in the layouts that it documents."""

from flopwitness.measure.sources import nvidia_csv, nvidia_dmon, nvidia_query, nvidia_xml
from flopwitness.testing.known_decoder import KnownDecoder, read_format

__all__ = ["decoders"]

_UUID = "GPU-0a1b2c3d-0000-4000-8000-00000000000{}"


def decoders() -> tuple[KnownDecoder, ...]:
    """The readers, each with good logs in every form that it knows."""
    return (
        KnownDecoder(
            name="nvidia-smi-csv",
            decode=read_format(nvidia_csv.FORMATS[0]),
            seeds=_csv_seeds(),
            recordings=("data/nvidia_smi/*.csv", "data/gaissa_keras/rtx3070/*/gpu-power-*.csv"),
        ),
        KnownDecoder(
            name="nvidia-smi-query", decode=read_format(nvidia_query.FORMATS[0]), seeds=_query_seeds()
        ),
        KnownDecoder(name="nvidia-smi-xml", decode=read_format(nvidia_xml.FORMATS[0]), seeds=_xml_seeds()),
        KnownDecoder(name="nvidia-smi-dmon", decode=read_format(nvidia_dmon.FORMATS[0]), seeds=_dmon_seeds()),
    )


def _csv_seeds() -> tuple[bytes, ...]:
    header = "timestamp, index, uuid, name, power.draw [W], utilization.gpu [%], memory.used [MiB], pstate"
    rows = [
        f"2025/05/14 09:00:{second:02d}.{500 * gpu:03d}, {gpu}, {_UUID.format(gpu)}, NVIDIA H100 80GB HBM3, "
        f"{300 + second}.2{gpu} W, 9{gpu} %, 70123 MiB, P0"
        for second in range(8)
        for gpu in range(2)
    ]
    rows[3] = rows[3].replace("301.21 W", "[N/A]")
    full = "\n".join((header, *rows[:8], header, *rows[8:])) + "\n"
    plain = "timestamp, power.draw.average [W], power.draw.instant [W], clocks.current.sm [MHz]\n" + "".join(
        f"2025/05/14 09:00:{second:02d}.000, 250.5, {second}99.25, 1410\n" for second in range(8)
    )
    undated = "power.draw [W]\n" + "".join(f"{second}0.00 W\n" for second in range(1, 9))
    logger = "timestamp,gpu_name,gpu_usage,gpu_power_draw,gpu_temperature\n" + "".join(
        f"2025-05-14 09:00:{second:02d}.000,NVIDIA A10G,{second} %,1{second}.11 W,3{second}\n"
        for second in range(8)
    )
    return (
        full.encode(),
        plain.replace("\n", "\r\n").encode(),
        b"\xff\xfe" + full.encode("utf-16-le"),
        undated.encode(),
        logger.encode(),
        f"Wed May 14 09:00:00 UTC 2025\n{full}2025/05/14 09:00:0".encode(),
    )


def _query(second: int, gpus: int) -> str:
    head = (
        "\n==============NVSMI LOG==============\n\n"
        f"Timestamp                           : Wed May 14 09:00:{second:02d} 2025\n"
        "Driver Version                      : 550.54.15\n"
        f"CUDA Version                        : 12.4\n\nAttached GPUs                       : {gpus}\n"
    )
    return head + "".join(
        f"""GPU 00000000:0{gpu}:00.0
    Product Name                    : NVIDIA H100 80GB HBM3
    MIG Mode
        Current                     : Disabled
    GPU UUID                        : {_UUID.format(gpu)}
    GPU Virtualization Mode
        Virtualization Mode         : None
    Performance State               : P0
    FB Memory Usage
        Used                        : 7012{gpu} MiB
    Utilization
        Gpu                         : 9{gpu} %
        Memory                      : 4{gpu} %
    Temperature
        GPU Current Temp            : 6{gpu} C
    GPU Power Readings
        Average Power Draw          : 61{gpu}.25 W
        Instantaneous Power Draw    : 62{gpu}.75 W
        Current Power Limit         : 700.00 W
    GPU Memory Power Readings
        Average Power Draw          : 8{gpu}.50 W
    Module Power Readings
        Average Power Draw          : N/A
    Clocks
        SM                          : 1980 MHz
        Memory                      : 2619 MHz
    Processes                       : None
"""
        for gpu in range(gpus)
    )


def _query_seeds() -> tuple[bytes, ...]:
    older = _query(1, 1)
    for new, old in (
        ("GPU Power Readings", "Power Readings"),
        ("Instantaneous Power Draw", "Power Draw"),
        ("Current Power Limit", "Enforced Power Limit"),
        ("    Product Name                    : NVIDIA H100 80GB HBM3\n", ""),
    ):
        older = older.replace(new, old)
    snapshots = _query(1, 2) + _query(2, 2)
    return snapshots.encode(), older.encode(), snapshots.replace("\n", "\r\n").encode()


def _document(second: int, gpus: int) -> str:
    head = (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n'
        f"\t<timestamp>Wed May 14 09:00:{second:02d} 2025</timestamp>\n"
        f"\t<driver_version>550.54.15</driver_version>\n\t<attached_gpus>{gpus}</attached_gpus>\n"
    )
    body = "".join(
        f"""	<gpu id="00000000:0{gpu}:00.0">
		<product_name>NVIDIA H100 80GB HBM3</product_name>
		<mig_mode>
			<current_mig>Enabled</current_mig>
		</mig_mode>
		<uuid>{_UUID.format(gpu)}</uuid>
		<performance_state>P0</performance_state>
		<fb_memory_usage>
			<used>7012{gpu} MiB</used>
		</fb_memory_usage>
		<utilization>
			<gpu_util>9{gpu} %</gpu_util>
		</utilization>
		<gpu_power_readings>
			<average_power_draw>61{gpu}.25 W</average_power_draw>
			<instant_power_draw>62{gpu}.75 W</instant_power_draw>
			<current_power_limit>700.00 W</current_power_limit>
		</gpu_power_readings>
		<clocks>
			<sm_clock>1980 MHz</sm_clock>
		</clocks>
		<processes>
		</processes>
	</gpu>
"""
        for gpu in range(gpus)
    )
    return head + body + "</nvidia_smi_log>\n"


def _xml_seeds() -> tuple[bytes, ...]:
    older = _document(3, 1).replace("gpu_power_readings", "power_readings")
    older = older.replace("instant_power_draw", "power_draw")
    return (_document(1, 2) + _document(2, 2)).encode(), older.encode()


def _dmon_seeds() -> tuple[bytes, ...]:
    head = "# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk     fb \n"
    units = "# Idx      W      C      C      %      %    MHz    MHz     MB \n"
    rows = [
        f"    {gpu}    30{second}     6{gpu}      -     9{gpu}     40   2619   1980  70123 \n"
        for second in range(6)
        for gpu in range(2)
    ]
    plain = head + units + "".join(rows[:6]) + head + units + "".join(rows[6:])
    dated_head = (
        "#Date       Time     " + head.removeprefix("#") + "#YYYYMMDD   HH:MM:SS " + units.removeprefix("#")
    )
    dated = dated_head + "".join(f" 20250514   09:00:{i // 2:02d} {row}" for i, row in enumerate(rows))
    of_day = dated.replace("Date       ", "").replace("YYYYMMDD   ", "").replace(" 20250514   ", " ")
    listed = "#gpu, pwr, gtemp, sm, pclk\n#Idx, W, C, %, MHz\n0, 301, 60, 90, 1980\n0, 302, 60, -, 1980\n"
    return plain.encode(), dated.encode(), of_day.encode(), listed.encode()
