// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cm/event_text.h"

#include <array>

namespace ib::cm {
namespace {

constexpr const char* kNothing = "nothing: this is the way it goes";
constexpr const char* kTraceTells =
    "`softib trace`, which says for this connection what stands in the way";

constexpr std::array kEvents = {
    NumberedText{0,
                 {"RDMA_CM_EVENT_ADDR_RESOLVED",
                  "rdma_resolve_addr has found the port that leads to the address", kNothing}},
    NumberedText{1,
                 {"RDMA_CM_EVENT_ADDR_ERROR",
                  "rdma_resolve_addr has found no port that leads to the address; the status is an "
                  "errno, negative",
                  "whether a node of the fabric has the address (`softib status`), and whether its "
                  "port is up; the trace names both"}},
    NumberedText{2,
                 {"RDMA_CM_EVENT_ROUTE_RESOLVED",
                  "rdma_resolve_route has got a path from the subnet administrator", kNothing}},
    NumberedText{3,
                 {"RDMA_CM_EVENT_ROUTE_ERROR",
                  "rdma_resolve_route has got no path; the status is an errno, negative",
                  "partitions and cables of both ports, and the subnet administrator's port: "
                  "`softib trace` has its answer"}},
    NumberedText{4,
                 {"RDMA_CM_EVENT_CONNECT_REQUEST",
                  "a peer wants to connect to this listener: a REQ or SIDR_REQ has come",
                  "that the program calls rdma_accept or rdma_reject for the new id of the event"}},
    NumberedText{
        5,
        {"RDMA_CM_EVENT_CONNECT_RESPONSE",
         "the peer has accepted (REP), and the id has no queue pair of librdmacm",
         "that the program moves the queue pair to RTR and RTS, and then calls rdma_accept or "
         "rdma_establish"}},
    NumberedText{
        6,
        {"RDMA_CM_EVENT_CONNECT_ERROR", "the connection failed on this side while it was made",
         "the attributes of the queue pair, and `softib trace`"}},
    NumberedText{7,
                 {"RDMA_CM_EVENT_UNREACHABLE",
                  "the peer has not answered REQ or REP in spite of all retries (status -110), or "
                  "for datagrams has refused (status: of SIDR_REP)",
                  kTraceTells}},
    NumberedText{8,
                 {"RDMA_CM_EVENT_REJECTED",
                  "the peer has refused the connection (REJ); the status is the reason",
                  "`softib explain reason N` with the status, and `softib trace`"}},
    NumberedText{9, {"RDMA_CM_EVENT_ESTABLISHED", "the connection is ready for use", kNothing}},
    NumberedText{10,
                 {"RDMA_CM_EVENT_DISCONNECTED",
                  "one of both sides has ended the connection (DREQ, DREP); with status -110 the "
                  "peer has not confirmed it",
                  "whether the peer's program has ended: `softib connections`, `softib status`"}},
    NumberedText{
        11,
        {"RDMA_CM_EVENT_DEVICE_REMOVAL", "the HCA of this id was pulled out",
         "that the program destroys the id with its objects; `softib hca add` plugs the HCA in "
         "again"}},
    NumberedText{12,
                 {"RDMA_CM_EVENT_MULTICAST_JOIN", "the port is a member of the group", kNothing}},
    NumberedText{13,
                 {"RDMA_CM_EVENT_MULTICAST_ERROR",
                  "the port could not join the group, or is no member any more; the status is an "
                  "errno, negative",
                  "the port and the subnet administrator's port: `softib trace` has its answer"}},
    NumberedText{14,
                 {"RDMA_CM_EVENT_ADDR_CHANGE", "the address of this id is at another port now",
                  "that the program connects again; `softib status` shows the addresses"}},
    NumberedText{15,
                 {"RDMA_CM_EVENT_TIMEWAIT_EXIT",
                  "the queue pair of the ended connection may be used again", kNothing}},
};

constexpr const char* kCall = "the state of the id, and the arguments of the call";

constexpr std::array kErrors = {
    NumberedText{2, {"ENOENT", "there is no id with this number", kCall}},
    NumberedText{
        11, {"EAGAIN", "there is no event yet", "that the program polls the event channel first"}},
    NumberedText{12,
                 {"ENOMEM", "a limit is reached: of ids, events, memory or port numbers",
                  "whether the program takes its events and destroys its ids"}},
    NumberedText{13,
                 {"EACCES",
                  "another process has opened this rdma_cm descriptor: a child does not have the "
                  "event channels of its parent, on Linux neither",
                  "that each process creates its event channels and ids itself, after fork()"}},
    NumberedText{14, {"EFAULT", "an address that the program gave is not mapped", kCall}},
    NumberedText{
        16,
        {"EBUSY", "the queue pair has another connection, maybe in time-wait",
         "that the program uses a new queue pair, or waits for RDMA_CM_EVENT_TIMEWAIT_EXIT"}},
    NumberedText{19,
                 {"ENODEV", "the node has no usable port for it: down, asleep or pulled out",
                  "`softib status` for its ports; `softib port up`, `softib power resume`, `softib "
                  "hca add`"}},
    NumberedText{22,
                 {"EINVAL", "the call does not fit the state of the id, or a value is out of range",
                  "the order of calls, and the length of private data: 56 bytes with rdma_connect, "
                  "196 with rdma_accept, 148 with rdma_reject; datagrams 180 and 136"}},
    NumberedText{28, {"ENOSPC", "the answer has no room in the program's buffer", kCall}},
    NumberedText{38, {"ENOSYS", "the option or call does not exist", kCall}},
    NumberedText{93,
                 {"EPROTONOSUPPORT", "the service id belongs to no port space that the id may use",
                  "the service id and its mask in the AF_IB address, and the port space of the "
                  "id"}},
    NumberedText{98,
                 {"EADDRINUSE", "another id of this node has the port",
                  "`softib connections --all`, which names its program, or take another port"}},
    NumberedText{99,
                 {"EADDRNOTAVAIL", "the node does not have the address, or no port number is free",
                  "`softib status` for the node's addresses, of which one or 0.0.0.0 can be bound; "
                  "`softib connections --all` for ports that are taken"}},
    NumberedText{100,
                 {"ENETDOWN", "the port does not take part in the subnet",
                  "`softib status` for the port's state; `softib port up`"}},
    NumberedText{
        101,
        {"ENETUNREACH", "no node of this fabric has the address",
         "`softib status` for the addresses of the nodes; whether both programs run on the "
         "same fabric (--fabric)"}},
    NumberedText{104,
                 {"ECONNRESET", "the connection ended before the call",
                  "whether the peer's program has ended"}},
    NumberedText{106,
                 {"EISCONN", "the connection is established already",
                  "that rdma_notify() comes only before RDMA_CM_EVENT_ESTABLISHED"}},
    NumberedText{110,
                 {"ETIMEDOUT", "the peer or the subnet administrator has not answered in time",
                  kTraceTells}},
    NumberedText{111,
                 {"ECONNREFUSED",
                  "the peer has refused the connection: nobody listens there, or its program does "
                  "not want it",
                  "`softib connections --listen`; `softib trace` has the reason"}},
    NumberedText{113,
                 {"EHOSTUNREACH",
                  "the node of the address has no usable port of this link layer, or there is no "
                  "path to it",
                  "the state, link layer, partitions and cable of both ports: `softib status`"}},
};

}  // namespace

std::span<const NumberedText> rdma_events() {
  return kEvents;
}
std::span<const NumberedText> rdma_errors() {
  return kErrors;
}

}  // namespace ib::cm
