// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Records in which every field has a value of its own.
#pragma once

#include "sa/records/inform_info.h"
#include "sa/records/mc_member_record.h"
#include "sa/records/multi_path_record.h"
#include "sa/records/path_record.h"
#include "sa/records/service_record.h"
#include "verbs/gid.h"

namespace ib::sa {

inline PathRecord sample_path() {
  PathRecord path;
  path.service_id = 0x0102030405060708;
  path.dgid = verbs::make_gid(0xfe80000000000000, 0x22);
  path.sgid = verbs::make_gid(0xfe80000000000000, 0x11);
  path.dlid = 0x1234;
  path.slid = 0x5678;
  path.flow_label = 0xabcde;
  path.hop_limit = 0x40;
  path.traffic_class = 0x99;
  path.reversible = true;
  path.numb_path = 0x2a;
  path.pkey = 0x8001;
  path.qos_class = 0xfed;
  path.sl = 0x7;
  path.mtu_selector = Selector::Exactly;
  path.mtu = 5;
  path.rate_selector = Selector::Less;
  path.rate = 16;
  path.life_selector = Selector::Best;
  path.life = 18;
  path.preference = 3;
  return path;
}

inline MultiPathRecord sample_multi_path() {
  MultiPathRecord record;
  record.flow_label = 0xabcde;
  record.hop_limit = 0x40;
  record.traffic_class = 0x99;
  record.reversible = true;
  record.numb_path = 0x2a;
  record.pkey = 0x8001;
  record.qos_class = 0xfed;
  record.sl = 0x7;
  record.mtu_selector = Selector::Exactly;
  record.mtu = 5;
  record.rate_selector = Selector::Less;
  record.rate = 16;
  record.life_selector = Selector::Best;
  record.life = 18;
  record.service_id = 0x0102030405060708;
  record.independence = 1;
  record.sgid_count = 2;
  record.dgid_count = 1;
  record.gids[0] = verbs::make_gid(0xfe80000000000000, 0x11);
  record.gids[1] = verbs::make_gid(0xfe80000000000000, 0x22);
  record.gids[2] = verbs::make_gid(0xfe80000000000000, 0x33);
  return record;
}

inline McMemberRecord sample_member() {
  McMemberRecord record;
  record.mgid = {0xff, 0x12, 0x40, 0x1b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  record.port_gid = verbs::make_gid(0xfe80000000000000, 0x11);
  record.qkey = 0x0b1b0c1c;
  record.mlid = 0xc001;
  record.mtu_selector = Selector::Exactly;
  record.mtu = 4;
  record.traffic_class = 0x77;
  record.pkey = 0xffff;
  record.rate_selector = Selector::Exactly;
  record.rate = 3;
  record.life_selector = Selector::Less;
  record.life = 0x13;
  record.sl = 0xa;
  record.flow_label = 0x54321;
  record.hop_limit = 0xfe;
  record.scope = 2;
  record.join_state = 5;
  record.proxy_join = true;
  return record;
}

inline ServiceRecord sample_service() {
  ServiceRecord record;
  record.id = 0x1000000001060000;
  record.gid = verbs::make_gid(0xfe80000000000000, 0x11);
  record.pkey = 0x8002;
  record.lease_seconds = 60;
  record.key[15] = 0xee;
  record.name[0] = 's';
  record.data8[1] = 0x81;
  record.data16[7] = 0x1617;
  record.data32[0] = 0x32333435;
  record.data64[1] = 0x6465666768697071;
  return record;
}

inline InformInfo sample_inform_info() {
  InformInfo info;
  info.lid_last = 0x0304;
  info.type = 3;
  info.trap = 66;
  info.qpn = 0x123456;
  info.response_time = 0x12;
  info.producer = 4;
  return info;
}

}  // namespace ib::sa
