// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The texts of drops and troubles.
#include "ulp/ipoib/counters.h"

#include "ulp/ipoib/host.h"

namespace ib::ipoib {

const char* drop_text(Drop drop) {
  switch (drop) {
    case Drop::FrameMalformed: return "frame of the kernel is malformed";
    case Drop::FrameNotIp: return "frame is neither IP nor ARP";
    case Drop::FrameLinkDown: return "the interface has no carrier";
    case Drop::FrameForeignMac: return "frame is of another MAC address";
    case Drop::UnknownNeighbour: return "no neighbour has this MAC address";
    case Drop::NoPath: return "no path to the neighbour";
    case Drop::NoGroup: return "the multicast group cannot be joined";
    case Drop::QueueFull: return "too many packets wait";
    case Drop::WaitExpired: return "packet waited too long";
    case Drop::TooBig: return "packet is too big for the neighbour";
    case Drop::SendQueueFull: return "send queue is full";
    case Drop::MessageMalformed: return "message of the fabric is malformed";
    case Drop::MessageNotIp: return "message is neither IP nor ARP";
    case Drop::MessageOwn: return "own multicast";
    case Drop::MessageForeignGroup: return "multicast of a group that is not of the interface";
    case Drop::MessageUnknownConnection: return "message of an unknown connection";
    case Drop::MessageBadChecksum: return "wrong checksum";
    case Drop::KernelQueueFull: return "the kernel took no frame";
  }
  return "unknown reason";
}

const char* trouble_text(Trouble trouble) {
  switch (trouble) {
    case Trouble::None: return "reachable";
    case Trouble::PortDown: return "the port is not active";
    case Trouble::PkeyMissing: return "the port does not have the P_Key";
    case Trouble::BroadcastGroupMissing: return "the broadcast group cannot be joined";
    case Trouble::BroadcastGroupUnfit:
      return "the broadcast group has a rate or MTU that the port lacks";
    case Trouble::PathRefused: return "the subnet administrator has no path";
    case Trouble::PathTimeout: return "the subnet administrator does not answer the path query";
    case Trouble::GroupRefused: return "the subnet administrator refuses the group";
    case Trouble::GroupTimeout: return "the subnet administrator does not answer the join";
    case Trouble::ConnectionRefused: return "the neighbour refuses the connection";
    case Trouble::ConnectionLost: return "the connection was lost";
  }
  return "unknown";
}

}  // namespace ib::ipoib
