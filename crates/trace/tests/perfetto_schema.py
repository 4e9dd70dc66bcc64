"""Parses a Perfetto trace with the schema of the `perfetto` package and shows what is in it.

Usage: perfetto_schema.py FILE

Every message must consist of known fields only, every bundle be in order, every
track be described before it is used, every arrow that ends have begun. Then each
event, decision and counter is printed on a line of its own.
"""

import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


def no_unknown_fields(message, path):
    unknown = UnknownFieldSet(message)
    assert len(unknown) == 0, f"{path}: field {unknown[0].field_number} is not in the schema"
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        several = hasattr(value, "__len__") and not hasattr(value, "ListFields")
        for inner in value if several else [value]:
            no_unknown_fields(inner, f"{path}.{field.name}")


def annotation(item):
    if item.dict_entries:
        return "{" + ", ".join(f"{e.name}: {annotation(e)}" for e in item.dict_entries) + "}"
    if item.array_values:
        return "[" + ", ".join(annotation(e) for e in item.array_values) + "]"
    which = item.WhichOneof("value")
    return str(getattr(item, which)) if which else ""


def main():
    trace = Trace()
    with open(sys.argv[1], "rb") as file:
        trace.ParseFromString(file.read())
    tracks, flows = {}, set()
    for packet in trace.packet:
        no_unknown_fields(packet, "packet")
        assert packet.trusted_packet_sequence_id, "a packet without its sequence"
        if packet.HasField("ftrace_events"):
            bundle, last = packet.ftrace_events, 0
            for event in bundle.event:
                assert event.timestamp >= last, "a bundle out of order"
                last = event.timestamp
                name = event.WhichOneof("event")
                payload = getattr(event, name)
                if name == "generic":
                    name = f"generic {payload.event_name}"
                fields = str(payload).replace("\n", " ").strip()
                print(f"{event.timestamp} [{bundle.cpu}] {event.pid} {name}: {fields}")
        elif packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks, "a track described twice"
            assert not track.parent_uuid or track.parent_uuid in tracks, "a track before its parent"
            tracks[track.uuid] = track.name or f"task {track.thread.tid} of {track.thread.pid}"
        elif packet.HasField("track_event"):
            event = packet.track_event
            assert event.track_uuid in tracks, "an event on a track that is not described"
            flows.update(event.flow_ids)
            assert flows.issuperset(event.terminating_flow_ids), "an arrow that never began"
            where = f"{packet.timestamp} {tracks[event.track_uuid]}"
            if event.type == TrackEvent.TYPE_COUNTER:
                print(f"{where}: {event.counter_value}")
            else:
                arrows = [f" ->{flow}" for flow in event.flow_ids]
                arrows += [f" {flow}->" for flow in event.terminating_flow_ids]
                notes = [f" {item.name}={annotation(item)}" for item in event.debug_annotations]
                categories = ",".join(event.categories)
                print(f"{where}: {categories} {event.name}{''.join(arrows)}{''.join(notes)}")
        elif packet.HasField("process_tree"):
            for thread in packet.process_tree.threads:
                print(f"thread {thread.tid} of {thread.tgid}: {thread.name}")


main()
